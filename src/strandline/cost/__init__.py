"""What a refresh costs: one interface for the planner, fixed constants, and constants that a warehouse has measured."""
