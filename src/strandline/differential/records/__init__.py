"""The algorithms record by record, exactly as they are defined: the reference for the forms that run on large data."""
