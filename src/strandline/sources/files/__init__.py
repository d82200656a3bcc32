"""Dumps of tables as files: which are there, which are whole, and what they hold."""
