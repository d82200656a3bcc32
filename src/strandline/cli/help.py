"""Help texts: examples below each command's help."""

from __future__ import annotations


def examples(*lines: str) -> str:
    """Examples as an epilog that is printed line by line; a line is a command and what it is for, after ``#``."""
    split = [tuple(part.strip() for part in line.split("#", 1)) for line in lines]
    width = max(len(parts[0]) for parts in split)
    shown = [f"  {parts[0]:<{width}}  {parts[1]}" if len(parts) > 1 else f"  {parts[0]}" for parts in split]
    return "\n".join(["\b", "Examples:", *shown])
