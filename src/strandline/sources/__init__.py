"""Sources: one adapter per kind behind one protocol. What they hand over is SQL over tables, never rows in Python."""
