"""A question taken apart into queries of PostgreSQL.

Given rows go along as arrays, of which only the columns are sent that conditions there read, each combination of values
once; the numbers of the combinations come back beside the values of the tables, and what else the given rows have is
put to them here. Tables that no condition ties together are asked for apart, so that their product does not travel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from datetime import datetime
from itertools import chain, product
from math import prod
from typing import Any

from strandline.algebra.bag import Row, SignedBag, SignedRow
from strandline.algebra.plan import At, Scan
from strandline.algebra.scalar import Scalar, conjuncts
from strandline.algebra.scalar import columns as columns_of
from strandline.algebra.schema import names
from strandline.sources.postgres.tables import PgColumn, PgTable
from strandline.sources.postgres.types import ColumnType, Special
from strandline.sources.postgres.values import Value
from strandline.sources.questions import Question
from strandline.sql.postgres import Comparand, Translated, comparand, translated

SENT_AT_ONCE = 5_000
"""Combinations of values of a given scan that go along with one query."""

_ARRAYS = {
    "tinyint": "int2",
    "smallint": "int2",
    "int": "int4",
    "bigint": "int8",
    "float": "float4",
    "double": "float8",
    "boolean": "bool",
    "string": "text",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "binary": "bytea",
}

_SPECIAL_TYPES = ("numeric", "date", "timestamp", "timestamptz")


@dataclass(frozen=True)
class AskedColumn:
    """A column, its type in Spark, and how its values are made of text; *special* as for the source."""

    column: PgColumn
    type: ColumnType
    value: Value
    special: Special

    def comparand(self, alias: str, *, utf8: bool) -> Comparand:
        """The column of the table that is called *alias* in a query."""
        place, pg, plain = f"{alias}.{self.column.quoted}", self.column.resolved, comparand("", self.type.type)
        if plain.family == "text":
            return self._text(place, utf8=utf8)
        found = with_fields(plain, sql=f"{place}::int8" if pg.name == "oid" else place)
        if pg.name == "numeric" and plain.family == "double":
            # It may be out of the range of a double.
            found = with_fields(found, family=None)
        exceptional = pg.name in _SPECIAL_TYPES or pg.element is not None
        return with_fields(found, special=self.special) if exceptional else found

    def _text(self, place: str, *, utf8: bool) -> Comparand:
        """Text, or the text form of something else; bytes in another encoding are not compared as Spark compares."""
        name, printed = self.column.resolved.name, self.type.read(place)
        if not utf8:
            return Comparand(printed, None)
        if name in ("text", "varchar", "name"):
            collation = self.column.collation if self.column.deterministic else None
            return Comparand(place, "text", collation=collation)
        if name == "uuid":
            return Comparand(printed, "text", collation=None, indexed=(place, "uuid"))
        if name == "bpchar":
            return Comparand(printed, "text", collation=None, indexed=(place, "bpchar"))
        return Comparand(printed, "text", collation=None)


@dataclass(frozen=True)
class AskedTable:
    """A table as it is now, and those of its columns that have a type in Spark."""

    described: PgTable
    columns: Mapping[str, AskedColumn]


LookUp = Callable[[str], AskedTable]


class Joins:
    """The queries that answer a question, one for each group of scans that conditions tie together."""

    def __init__(
        self, question: Question, tables: Mapping[int, AskedTable], given: Mapping[int, SignedBag], *, utf8: bool
    ) -> None:
        self._scans, self._tables = question.scans, tables
        columns: dict[str, Comparand] = {}
        for number, scan in enumerate(question.scans):
            if number in tables:
                columns |= _of_table(scan, tables[number], number, utf8=utf8)
            else:
                columns |= _of_given(scan, number, given[number])
        left, sent = [], []
        for condition in chain.from_iterable(map(conjuncts, question.conditions)):
            found, whole = translated(condition, columns)
            sent += found
            if not whole:
                left.append(condition)
        self.left = tuple(left)
        needed = set(question.wanted).union(*(columns_of(condition) for condition in left))
        others = [name for scan in question.scans for name in names(scan.columns) if name in needed]
        self.shown = tuple(dict.fromkeys([*question.wanted, *others]))
        read = frozenset[str]().union(*(each.read for each in sent))
        self.bundles = {
            number: Bundle(question.scans[number], number, rows, read, self.shown) for number, rows in given.items()
        }
        self.groups = [self._group(*each) for each in _tied(question.scans, sent)]

    def _group(self, numbers: Sequence[int], conditions: Sequence[Translated]) -> Group:
        given = tuple(number for number in numbers if number in self.bundles)
        tables = tuple(number for number in numbers if number in self._tables)
        checked = frozenset[str]().union(*(each.checked for each in conditions))
        shown, extra = self._fields(tables, self.shown), self._fields(tables, checked.difference(self.shown))
        items = [f"{_alias(number)}.n" for number in given]
        items += [column.type.read(f"{_alias(number)}.{column.column.quoted}") for number, _, column in shown + extra]
        sources = [f"{self._tables[number].described.quoted} AS {_alias(number)}" for number in tables]
        where = " AND ".join(f"({each.sql})" for each in conditions)
        query = f"SELECT {', '.join(items) or 'true'} FROM ".replace("%", "%%")
        query += ", ".join([source.replace("%", "%%") for source in sources] + [self.bundles[n].source for n in given])
        query += f" WHERE {where}".replace("%", "%%") if where else ""
        return Group(
            given,
            tables,
            tuple(conditions),
            query,
            (*chain.from_iterable(self.bundles[number].shown for number in given), *(name for _, name, _ in shown)),
            tuple(column.value for _, _, column in shown + extra),
            len(shown),
        )

    def _fields(self, tables: Sequence[int], wanted: Collection[str]) -> list[_Field]:
        found = []
        for number in tables:
            scan = self._scans[number]
            for column, field in zip(names(scan.columns), names(scan.fields), strict=True):
                if column in wanted:
                    found.append((number, column, self._tables[number].columns[field]))
        return found

    @property
    def cancels_out(self) -> bool:
        """Whether nothing is left of the given rows of a scan, as far as anything of them is shown or compared."""
        return not all(bundle.members for bundle in self.bundles.values())


_Field = tuple[int, str, AskedColumn]
"""The number of a scan, the name of one of its columns there, and that column of the table."""


@dataclass(frozen=True)
class Chunk:
    """Some of the numbered combinations of values: as literals of arrays, and what goes with each."""

    arrays: tuple[str, ...]
    members: list[list[SignedRow]]


class Bundle:
    """A given scan: the combinations of values of the columns that are sent, numbered, and what goes with each.

    What goes with a combination are the values that are shown of the given rows that have it, with their counts. One
    with which nothing goes, since the counts cancel out, is not sent.
    """

    def __init__(self, scan: Scan, number: int, rows: SignedBag, sent: Collection[str], shown: Collection[str]) -> None:
        places = {name: place for place, name in enumerate(names(scan.columns))}
        self.shown = tuple(name for name in places if name in shown)
        self._sent = [places[name] for name in places if name in sent]
        shown_places = [places[name] for name in self.shown]
        by_key: dict[Row, list[SignedRow]] = {}
        for row, count in rows.items():
            by_key.setdefault(tuple(row[place] for place in self._sent), []).append(
                (tuple(row[place] for place in shown_places), count)
            )
        netted = {key: list(SignedBag(signed).items()) for key, signed in by_key.items()}
        self._keys = [key for key, signed in netted.items() if signed]
        self.members = [netted[key] for key in self._keys]
        kinds = [_array_type(scan.fields[place].type) for place in self._sent]
        listed = ", ".join(f"c{place}" for place in self._sent)
        arrays = ", ".join(f"%s::{kind}[]" for kind in kinds)
        self.source = f"unnest({arrays}) WITH ORDINALITY AS {_alias(number)} ({listed}, n)"

    def chunks(self) -> list[Chunk]:
        """The combinations, some at a time."""
        found = []
        for start in range(0, len(self._keys), SENT_AT_ONCE):
            some = slice(start, start + SENT_AT_ONCE)
            columns = zip(*self._keys[some], strict=True)
            found.append(Chunk(tuple(map(_array, columns)), self.members[some]))
        return found


@dataclass(frozen=True)
class Group:
    """Scans that conditions tie together: *query* gives the numbers of given combinations, then values of tables.

    *shown* are the columns of its rows, those of the given scans first; *values* make the values of what the query
    gives of the tables. Those beyond *shown* are read to see that they can be.
    """

    given: tuple[int, ...]
    tables: tuple[int, ...]
    conditions: tuple[Translated, ...]
    query: str
    shown: tuple[str, ...]
    values: tuple[Value, ...]
    kept: int

    def made(self, row: Row, members: Sequence[Sequence[Sequence[SignedRow]]]) -> Iterator[SignedRow]:
        """The rows that a row of the answer stands for."""
        width = len(self.given)
        texts = row[width : width + len(self.values)]
        values = [None if text is None else value(text) for value, text in zip(self.values, texts, strict=True)]
        read = values[: self.kept]
        for matched in product(*(of_scan[row[place] - 1] for place, of_scan in enumerate(members))):
            given = chain.from_iterable(values for values, _ in matched)
            yield (*given, *read), prod(count for _, count in matched)


def untranslatable(
    scans: tuple[Scan, ...], conditions: tuple[Scalar, ...], look_up: LookUp, *, utf8: bool
) -> tuple[Scalar, ...]:
    """The conditions that PostgreSQL does not evaluate, or not the whole of."""
    columns: dict[str, Comparand] = {}
    for number, scan in enumerate(scans):
        if isinstance(scan.operand, At):
            columns |= _of_table(scan, look_up(scan.operand.relation.partition(".")[2]), number, utf8=utf8)
        else:
            columns |= _of_given(scan, number, ())
    parts = chain.from_iterable(map(conjuncts, conditions))
    return tuple(condition for condition in parts if not translated(condition, columns)[1])


def in_order(rows: Iterable[Iterable[SignedRow]], groups: Sequence[Group], shown: Sequence[str]) -> Iterator[SignedRow]:
    """The product of the rows of all groups, with columns in the order of *shown*."""
    have = [name for group in groups for name in group.shown]
    places = [have.index(name) for name in shown]
    for parts in product(*rows):
        whole = tuple(chain.from_iterable(values for values, _ in parts))
        yield tuple(whole[place] for place in places), prod(count for _, count in parts)


def _alias(number: int) -> str:
    return f"s{number}"


def _of_table(scan: Scan, table: AskedTable, number: int, *, utf8: bool) -> dict[str, Comparand]:
    named = zip(names(scan.columns), names(scan.fields), strict=True)
    return {column: table.columns[field].comparand(_alias(number), utf8=utf8) for column, field in named}


def _of_given(scan: Scan, number: int, rows: Iterable[Row]) -> dict[str, Comparand]:
    """The columns of a given scan that can be sent: no text of PostgreSQL has the character 0."""
    found = {
        column.name: comparand(f"{_alias(number)}.c{place}", column.type) for place, column in enumerate(scan.columns)
    }
    odd = {
        column.name
        for place, column in enumerate(scan.columns)
        if column.type == "string" and any("\0" in (row[place] or "") for row in rows)
    }
    return {name: each for name, each in found.items() if each.family is not None and name not in odd}


def _tied(scans: Sequence[Scan], conditions: Sequence[Translated]) -> list[tuple[list[int], list[Translated]]]:
    """Scans, by number, that conditions tie together directly or by way of others, and those conditions."""
    home = {name: number for number, scan in enumerate(scans) for name in names(scan.columns)}
    groups: list[tuple[set[int], list[Translated]]] = [({number}, []) for number in range(len(scans))]
    for condition in conditions:
        touched = {home[name] for name in condition.read}
        met = [group for group in groups if group[0] & touched]
        merged = set[int]().union(*(numbers for numbers, _ in met))
        groups = [group for group in groups if group not in met]
        groups.append((merged, [*chain.from_iterable(own for _, own in met), condition]))
    return [(sorted(numbers), own) for numbers, own in groups]


def _array_type(type_: str) -> str:
    return "numeric" if type_.startswith("decimal") else _ARRAYS[type_]


def _array(values: Iterable[Any]) -> str:
    """Values as a literal of an array."""
    return "{" + ",".join("NULL" if value is None else _element(value) for value in values) + "}"


def _element(value: Any) -> str:
    text = _text(value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(value: Any) -> str:
    """A value in a notation that PostgreSQL reads."""
    match value:
        case bytes():
            return "\\x" + value.hex()
        case datetime():
            return value.isoformat(" ")
        case _:
            return str(value)
