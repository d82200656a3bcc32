"""Graphs of views of the literature (Labio, chapter 3), sizes for them, and strategies as it writes them."""

from __future__ import annotations

import re

from strandline.propagate.strategies.expressions import Comp, Expression, Inst, Strategy
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.sizes import Size

FIGURE_3_1 = ViewGraph({"C": (), "O": (), "L": (), "V": ("C", "O", "L")})
FIGURE_3_2 = ViewGraph({**FIGURE_3_1.defined_on, "V'": ("C", "O", "L")})
FIGURE_3_3 = ViewGraph({"V1": (), "V2": (), "V3": (), "V4": ("V2", "V3"), "V5": ("V1", "V4")})
FIGURE_3_11 = ViewGraph({"V1": (), "V2": (), "V3": (), "V4": ("V2", "V3"), "V5": ("V1", "V2", "V4")})
"""The figure is lost; the text and its proofs leave this."""

TPC_D = ViewGraph(
    {
        **dict.fromkeys(("C", "O", "L", "S", "N", "R"), ()),
        "Q3": ("C", "O", "L"),
        "Q5": ("C", "O", "L", "S", "N", "R"),
        "Q10": ("C", "O", "L", "N"),
    }
)
"""Figure 3.4."""

CONFLICT = ViewGraph({"A": (), "B": (), "W": ("A", "B"), "X": ("A", "B", "W")})
"""X wants W first, so A and B wait for Inst(W), so W must take both at once: the best strategy is not 1-way."""

SIZES_3_3 = {
    "V1": Size.growing(1_000, 10),
    "V2": Size.growing(500, -50),
    "V3": Size.growing(200, 20),
    "V4": Size.growing(4_000, -300),
    "V5": Size.growing(100, 25),
}
SIZES_3_11 = {
    "V1": Size.growing(100, 5),
    "V2": Size.growing(100, -5),
    "V3": Size.growing(100, 10),
    "V4": Size.growing(1_000, -400),
    "V5": Size(10, 10, 4),
}
SIZES_CONFLICT = {
    "A": Size.growing(1_000, -10),
    "B": Size.growing(1_000, -10),
    "W": Size.growing(10_000, -1_000),
    "X": Size.growing(500, -50),
}
UNKNOWN = Size(0, 0, 0)
SIZES_TPC_D = {
    "C": Size.growing(150_000, -15_000),
    "O": Size.growing(1_500_000, -150_000),
    "L": Size.growing(6_001_215, -600_122),
    "S": Size.growing(10_000, -1_000),
    "N": Size.growing(25, -2),
    "R": Size(5, 5, 0),
    "Q3": UNKNOWN,
    "Q5": UNKNOWN,
    "Q10": UNKNOWN,
}
"""Scale factor 1, all but R shrunk by a tenth. Installs of the summary tables are left out."""


def over(n: int) -> ViewGraph:
    """A view V over n base views."""
    sources = tuple(f"V{number}" for number in range(1, n + 1))
    return ViewGraph({**dict.fromkeys(sources, ()), "V": sources})


def parsed(text: str) -> Strategy:
    """``Comp(V,{V1,V2}), Inst(V1), ..`` as a strategy."""
    found: list[Expression] = []
    for view, sources, installed in re.findall(r"Comp\(([\w']+),\{([\w',]*)\}\)|Inst\(([\w']+)\)", text):
        found.append(Inst(installed) if installed else Comp(view, frozenset(filter(None, sources.split(",")))))
    return tuple(found)
