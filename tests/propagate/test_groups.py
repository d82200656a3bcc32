"""Views that are declared to move together."""

from __future__ import annotations

from strandline.propagate.groups import held_back, whole_groups

GROUPS = {"money": ["revenue", "costs", "profit"], "stock": ["parts"]}


def test_naming_one_view_of_a_group_names_all_of_it() -> None:
    assert whole_groups(["costs", "other"], GROUPS) == ["costs", "other", "revenue", "profit"]
    assert whole_groups(["other"], GROUPS) == ["other"]


def test_a_view_that_cannot_move_holds_its_group_back_and_nobody_else() -> None:
    known = ["revenue", "costs", "parts", "other"]
    held = held_back(GROUPS, {"costs": "SOURCE_UNREACHABLE: down"}, known)
    assert set(held) == {"revenue"}
    assert "costs" in held["revenue"] and "group money" in held["revenue"] and "down" in held["revenue"]
    assert held_back(GROUPS, {"other": "no"}, known) == {}
