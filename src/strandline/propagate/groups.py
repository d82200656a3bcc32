"""Groups of views that move together: a new state shows all of a group brought up to date, or none of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

Groups = Mapping[str, Sequence[str]]
"""The members of each group, by its name; a view is in one group at most."""


def whole_groups(names: Iterable[str], groups: Groups) -> list[str]:
    """*names*, and whatever must move with them."""
    wanted = list(dict.fromkeys(names))
    for members in groups.values():
        if any(name in wanted for name in members):
            wanted.extend(name for name in members if name not in wanted)
    return wanted


def held_back(groups: Groups, stuck: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    """The views among *known* that stay where they are because one of their group is *stuck*, each with why."""
    found: dict[str, str] = {}
    for group, members in groups.items():
        cause = next((name for name in members if name in stuck), None)
        if cause is None:
            continue
        for name in members:
            if name not in stuck and name in known:
                found[name] = f"{cause}, which moves together with it (group {group}), cannot: {stuck[cause]}"
    return found
