"""From sources' changes to durable deltas of leaves, and the unit-of-work log."""
