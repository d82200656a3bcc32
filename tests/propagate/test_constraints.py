"""Which of the constraints that sources declare are meant, given the keys that tables have."""

from __future__ import annotations

from pathlib import Path

from strandline.algebra.constraints import AppendOnly, ForeignKey, NotNull
from strandline.catalog import Catalog, Json
from strandline.propagate.constraints import declared_with


def test_a_foreign_key_refers_to_the_key_that_its_table_has_now(tmp_path: Path) -> None:
    with Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        stated: dict[str, Json] = {
            "foreign_keys": [{"columns": ["o"], "references": "orders"}],
            "not_null": ["o"],
            "append_only": True,
        }
        catalog.sources.put("shop", "delta", {"constraints": {"lines": stated}})
        others = (NotNull("shop.lines", "o"), AppendOnly("shop.lines"))
        key = ForeignKey("shop.lines", ("o",), "shop.orders", ("id",))
        assert declared_with(catalog, {"shop.orders": ("id",)}) == (key, *others)
        assert declared_with(catalog, {"shop.orders": ()}) == declared_with(catalog, {}) == others
        # its key got another column since
        assert declared_with(catalog, {"shop.orders": ("id", "day")}) == others
