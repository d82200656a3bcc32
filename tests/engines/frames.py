"""DataFrames of a Connect server and the SQL that is made of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from strandline import Warehouse
from strandline.define.frames import query_text
from strandline.define.relations import KnownRelations
from strandline.engine.types import columns_of
from strandline.errors import StrandlineError
from strandline.sql.ddl import parse_select
from strandline.sql.references import replaced
from tests.conftest import bag
from tests.docs.markdown import ROOT, blocks
from tests.docs.tour import carry_out
from tests.engines.transformations import TRANSFORMATIONS
from tests.warehouse.shop import Shop, assert_verified

VIEWS = {
    "spark": [
        "join_and_group",
        "using_left",
        "having",
    ],
    # Sail gives a union with NULL no type, and has no grouping sets of DataFrames.
    "sail": [name for name in TRANSFORMATIONS if name not in ("by_name", "grouping_sets")],
}


def seen(server: str, session: Any, folder: Path) -> dict[str, Any]:
    """How each DataFrame compares with its SQL, and by which strategies views made of them are refreshed."""
    shop = Shop(folder / "lakes")
    shop.create()
    with Warehouse.open(folder / "project", spark=session) as warehouse:
        shop.declare(warehouse)
        names = [name for name in TRANSFORMATIONS if server == "spark" or name != "grouping_sets"]
        for table in ("customers", "orders", "lines"):
            # No row was changed yet, so that the files are the table; Delta would look them up for each query anew.
            session.read.parquet(shop.path(table)).createOrReplaceTempView(table)
        compared = {name: same_rows(warehouse, session, name) for name in names}
        carry_out_page(session, folder)
        return {"compared": compared, "maintained": maintained(warehouse, shop, VIEWS[server])}


def carry_out_page(session: Any, folder: Path) -> None:
    """The programs of the page on views in Python, in a folder of their own."""
    page = folder / "page"
    page.mkdir()
    os.chdir(page)
    namespace: dict[str, Any] = {"__name__": "page", "spark": session}
    shown = blocks(ROOT / "docs" / "dataframes.md", "python", "text")
    carry_out(shown[next(place for place, block in enumerate(shown) if block.language == "python") :], namespace)
    namespace["wh"].close()


def same_rows(warehouse: Warehouse, session: Any, name: str) -> str:
    """``same``, or how a DataFrame over the tables and its SQL over the same tables differ."""
    transformation = TRANSFORMATIONS[name]
    relations = KnownRelations(warehouse._catalog, warehouse._sources)
    frame = transformation(lambda table: session.table(table.split(".")[1]))
    try:
        text = query_text(transformation, warehouse.table, relations, warehouse._engine)
        query = replaced(parse_select(text), relations, lambda r: r.name.split(".")[1])
        made = session.sql(query)
        if typed(made) != typed(frame):
            return f"{made.schema.simpleString()} for {frame.schema.simpleString()}: {text}"
        differ = bag(made.collect()) != bag(frame.collect())
    except StrandlineError as error:
        return str(error)
    return f"other rows: {text}" if differ else "same"


def typed(frame: Any) -> list[tuple[str, str]]:
    """Names and types of columns; whether Spark knows that there is no NULL does not count."""
    return [(column.name, column.type) for column in columns_of(frame.schema.json())]


def maintained(warehouse: Warehouse, shop: Shop, names: list[str]) -> dict[str, list[str]]:
    """The strategies by which views made of DataFrames were refreshed; each equals its query in the end."""
    for name in names:
        warehouse.view(name, TRANSFORMATIONS[name], policy="INCREMENTAL STRICT")
    assert warehouse.view("having", TRANSFORMATIONS["having"], policy="INCREMENTAL STRICT") is None
    warehouse.view("above", warehouse.table("having").filter("n > 25"), policy="INCREMENTAL")
    strategies: dict[str, set[str]] = {}
    for change in (shop.place_orders, shop.move):
        change()
        report = warehouse.refresh()
        assert report.ok, {name: view.problem for name, view in report.views.items()}
        for name, view in report.views.items():
            strategies.setdefault(name, set()).add(view.strategy)
    assert_verified(warehouse)
    return {name: sorted(found) for name, found in strategies.items()}
