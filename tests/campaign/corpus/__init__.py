"""A corpus of view definitions, the tables they read, and random changes of those tables."""
