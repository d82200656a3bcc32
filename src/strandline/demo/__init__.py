"""The demonstration: a small shop whose views are kept up to date while it changes."""
