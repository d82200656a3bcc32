"""All rows of a source table in one snapshot of it, as Spark reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from strandline.engine.session import Engine
from strandline.sources.protocol import Baseline
from strandline.sql.names import quoted


@contextmanager
def jdbc_rows(
    engine: Engine, baseline: Baseline, parsers: Mapping[str, Callable[[str], str]], columns: Sequence[str], prefix: str
) -> Iterator[str]:
    """A SELECT of *columns* of a table, in the values that *parsers* make of their text form, while the context lasts.

    *prefix* begins the names of the views that stand for its parts.
    """
    views = [f"strandline_{prefix}_{number}" for number in range(len(baseline.rows))]
    shown = ", ".join(f"{parsers[name](quoted(name))} AS {quoted(name)}" for name in columns)
    try:
        for view, rows in zip(views, baseline.rows, strict=True):
            engine.jdbc_view(view, rows.options, rows.parts)
        yield f"SELECT {shown} FROM ({' UNION ALL '.join(f'SELECT * FROM {view}' for view in views)})"
    finally:
        for view in views:
            engine.drop_view(view)
