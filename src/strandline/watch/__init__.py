"""Watching: a process that refreshes views by schedule or as changes arrive, and tells how it goes."""
