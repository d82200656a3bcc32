"""Outer join: its inner part *bilinear*, the rows beside NULLs by *affected keys*."""

from __future__ import annotations

from strandline.algebra.plan import OuterJoin, UnionAll, decomposed

STRATEGY = "bilinear, affected keys"


def parts(node: OuterJoin) -> UnionAll:
    """``L ⟕ R = (L ⋈ R) + (L ▷ R) × NULL``, whose parts are differentiated each by its rule."""
    return decomposed(node)
