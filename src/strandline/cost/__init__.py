"""What a refresh costs: one interface for the planner, fixed constants for now."""
