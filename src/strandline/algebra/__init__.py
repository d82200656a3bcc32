"""The relational algebra of signed bags: plans, terms, differentiation, and an in-memory evaluator.

Nothing here knows SQL text, Spark or a catalog.
"""
