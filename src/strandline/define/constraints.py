"""Declared constraints against the tables they name: each table and column is there, each reference is to a key.

Whether they hold is looked at when views are refreshed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from strandline.algebra.equality import alike_types
from strandline.errors import SourceError
from strandline.sources.protocol import Source, TableInfo
from strandline.sql.names import choices


def check_constraints(name: str, config: Mapping[str, Any], sources: Mapping[str, Source]) -> None:
    """Raise SourceError unless what source *name* declares can be meant."""
    for table, given in (config.get("constraints") or {}).items():
        info = _table(f"constraints of source {name}", name, table, sources)
        where = f"constraints of {name}.{table}"
        _columns(where, info, given.get("not_null", ()))
        for foreign_key in given.get("foreign_keys", ()):
            _check_foreign_key(where, name, info, foreign_key, sources)


def _check_foreign_key(
    where: str, source: str, info: TableInfo, given: Mapping[str, Any], sources: Mapping[str, Source]
) -> None:
    other, _, table = given["references"].rpartition(".")
    referred = _table(where, other or source, table, sources)
    key = given.get("key") or list(referred.key)
    ours, theirs = _columns(where, info, given["columns"]), _columns(where, referred, key)
    named = f"{other or source}.{table}"
    if not referred.key:
        raise _bad(where, f"{named} has no key to refer to; declare its key")
    if set(key) != set(referred.key):
        raise _bad(where, f"({', '.join(key)}) is not the key of {named}, which is ({', '.join(referred.key)})")
    if len(ours) != len(theirs):
        raise _bad(where, f"({', '.join(given['columns'])}) does not match the key ({', '.join(key)}) of {named}")
    for mine, its in zip(ours, theirs, strict=True):
        if not alike_types(mine[1], its[1]):
            raise _bad(where, f"{mine[0]} is {mine[1]}, and {its[0]} of {named} is {its[1]}; types have to be equal")


def _table(where: str, source: str, table: str, sources: Mapping[str, Source]) -> TableInfo:
    if source not in sources:
        raise _bad(where, f"there is no source {source}; there are: {choices(sources, source)}")
    tables = sources[source].tables()
    if table not in tables:
        raise _bad(where, f"source {source} has no table {table}; it has: {choices(tables, table)}")
    return tables[table]


def _columns(where: str, info: TableInfo, wanted: Iterable[str]) -> Sequence[tuple[str, str]]:
    types = {column.name: column.type for column in info.columns}
    for name in wanted:
        if name not in types:
            raise _bad(where, f"{info.name} has no column {name}; it has: {choices(types, name)}")
    return [(name, types[name]) for name in wanted]


def _bad(where: str, what: str) -> SourceError:
    return SourceError("BAD_CONSTRAINT", f"{where}: {what}.")
