"""How the bench counts right choices."""

from __future__ import annotations

from bench.choice import Turn, score
from strandline.propagate.plan import NodePlan
from strandline.reasons import Reason

PLAN = NodePlan("v", False, "incremental", Reason("CHANGES"), 0)


def turn(changes: float, recompute: float, chosen: str) -> Turn:
    return Turn(PLAN, {"changes": changes, "recompute": recompute}, {"fixed": chosen})


def test_wrong_choices_cost_what_they_took_longer() -> None:
    turns = [turn(1, 3, "changes"), turn(4, 2, "changes"), turn(2, 1, "recompute")]
    found = score(turns, "fixed")
    assert (found.right, found.choices, found.lost, found.best) == (2, 3, 2, 4)
    assert str(found) == "right 2 of 3 (67%), wrong choices cost 2.0 s, 50% of the best"


def test_what_takes_nearly_the_same_is_never_wrong() -> None:
    for chosen in ("changes", "recompute"):
        found = score([turn(1.0, 1.05, chosen)], "fixed")
        assert (found.right, found.lost) == (1, 0)
