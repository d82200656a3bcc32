"""Upkeep of a warehouse's own tables and records: what is old goes, and what is scattered is put together."""
