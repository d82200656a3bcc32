"""Definitions: what names stand for, and views registered, replaced and dropped."""
