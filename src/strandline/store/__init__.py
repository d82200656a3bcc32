"""The warehouse's own Delta tables: what a node stores, how deltas are installed, and how a reader sees it."""
