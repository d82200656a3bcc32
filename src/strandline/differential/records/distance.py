"""How far rows have moved between two snapshots of a set (2.3)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def displacements(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[int]:
    """For each key in both, how many places it moved."""
    places = {key: place for place, key in enumerate(old)}
    return [abs(place - places[key]) for place, key in enumerate(new) if key in places]


def distance(old: Sequence[Hashable], new: Sequence[Hashable]) -> float:
    """0 if nothing moved; 1 if an even number of records is reversed."""
    longest = max(len(old), len(new))
    return sum(displacements(old, new)) / (longest**2 / 2) if longest else 0.0
