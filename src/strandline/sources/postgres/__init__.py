"""PostgreSQL as a source: its log of changes, and which of them a query saw."""
