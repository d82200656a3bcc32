"""Traces: a view, updates, and an order of events, as a file says them.

A trace is a JSON object; a file holds one, a list of them, or one a line. Relations join by equal attribute names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, ValidationError

from strandline.algebra.bag import SignedBag
from strandline.algebra.scalar import Call, Col, Lit, Scalar
from strandline.algebra.schema import names
from strandline.errors import IntegrateError, Origin
from strandline.integrate.algorithms import Options
from strandline.integrate.natural_join import Attributes, Clause, known, natural_join
from strandline.integrate.notation import parse_bag, parse_update
from strandline.integrate.view import View

EventKind = Literal["S_up", "W_up", "S_qu", "W_ans", "W_idle"]
_EVENT = re.compile(r"(S_up|W_up|S_qu|W_ans)_?(\d+)\Z|(W_idle)\Z")


class TraceModel(BaseModel):
    """A trace as it is written. The fields from *mv0* on say what is expected to happen, and may be left out."""

    model_config = ConfigDict(extra="forbid")

    id: str = ""
    algorithm: str | None = None
    rels: dict[str, Attributes]
    join: list[tuple[str, Attributes]] | None = None
    project: Attributes
    where: list[Clause] = Field(default_factory=list)
    keys: dict[str, Attributes] = Field(default_factory=dict)
    sources: dict[str, str] = Field(default_factory=dict)
    init: dict[str, str] = Field(default_factory=dict)
    updates: list[str | list[str]]
    events: str | None = None
    split: bool = False
    every: int = Field(default=1, ge=1)
    group_size: int = Field(default=2, ge=1)
    frequencies: dict[str, NonNegativeFloat] = Field(default_factory=dict)
    mv0: str | None = None
    queries: dict[str, str | list[str]] | None = None
    answers: dict[str, str | list[str]] | None = None
    collect: list[str] | None = None
    mv: list[str] | None = None
    view_at_source: list[str] | None = None
    holds: list[str] | None = None


@dataclass(frozen=True)
class Event:
    """An event and the number of the update that it is about."""

    kind: EventKind
    update: int

    def __str__(self) -> str:
        return self.kind if self.kind == "W_idle" else f"{self.kind}{self.update}"


@dataclass(frozen=True)
class Transaction:
    """What a source commits at once."""

    source: str
    text: str
    deltas: Mapping[str, SignedBag]


@dataclass(frozen=True)
class Trace:
    """A trace, ready to be replayed; *expected* is the file's own object, with what it says should happen."""

    name: str
    algorithm: str
    view: View
    options: Options
    relations: Mapping[str, SignedBag]
    transactions: tuple[Transaction, ...]
    events: tuple[Event, ...]
    guided: bool
    """Whether events that cannot happen are left out, and missing ones are added at the end."""
    expected: TraceModel


def read_traces(file: Path) -> list[Trace]:
    """The traces of a file."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise IntegrateError(
            "TRACE_UNREADABLE", f"{file} cannot be read: {reason}; give the path of a trace file."
        ) from error
    return [_trace(found, Origin(str(file), line)) for line, found in _objects(text, str(file))]


def parse_trace(found: object, where: str = "<trace>") -> Trace:
    """A trace from its JSON object."""
    return _trace(found, Origin(where))


def through(trace: Trace, algorithm: str) -> Trace:
    """*trace* through another algorithm: its events as far as they can happen, without what it says comes of them."""
    said = {"mv0", "queries", "answers", "collect", "mv", "view_at_source", "holds"}
    expected = trace.expected.model_copy(update=dict.fromkeys(said))
    name = f"{trace.name.rpartition('/')[0] or trace.name}/{algorithm}"
    return replace(trace, name=name, algorithm=algorithm, guided=True, expected=expected)


def _objects(text: str, file: str) -> list[tuple[int, object]]:
    """The JSON objects of a file with the lines on which they begin."""
    decoder, place, found = json.JSONDecoder(), 0, list[tuple[int, object]]()
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        line = text.count("\n", 0, place) + 1
        try:
            value, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise IntegrateError(
                "BAD_TRACE",
                f"the file is not JSON: {error.msg}; write one object, a list of objects, or one a line.",
                origin=Origin(file, error.lineno, error.colno),
            ) from error
        found += [(line, each) for each in value] if isinstance(value, list) else [(line, value)]
    if not found:
        raise IntegrateError("BAD_TRACE", "the file is empty; write a trace into it.", origin=Origin(file))
    return found


def _trace(found: object, origin: Origin) -> Trace:
    try:
        model = TraceModel.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the trace"
        raise IntegrateError("BAD_TRACE", f"{place}: {first['msg']}; correct it.", origin=origin) from error
    try:
        return _built(model)
    except ValueError as error:
        raise IntegrateError("BAD_TRACE", f"{error}.", origin=origin) from error


def _built(model: TraceModel) -> Trace:
    algorithm = model.algorithm or model.id.rpartition("/")[2].removesuffix("-repaired")
    if not algorithm:
        raise ValueError('no algorithm is named; add "algorithm", such as "eca"')
    view = _view(model)
    used = set(view.relations)
    known("init", model.init, used)
    relations = {name: _rows(f"init.{name}", model.init.get(name, "()"), view, name) for name in sorted(used)}
    for name, rows in relations.items():
        if any(count < 0 for count in rows.values()):
            raise ValueError(f"init.{name} has rows with a minus; a relation holds rows, and updates delete them")
    transactions = tuple(_transaction(number, update, view) for number, update in enumerate(model.updates, start=1))
    known("frequencies", model.frequencies, view.sources)
    _comparable(view, [*relations.items(), *(item for each in transactions for item in each.deltas.items())])
    options = Options(model.every, model.split, model.group_size, model.frequencies)
    events = tuple(_event(word, len(transactions)) for word in (model.events or "").split())
    guided = model.events is None
    return Trace(model.id or algorithm, algorithm, view, options, relations, transactions, events, guided, model)


def _view(model: TraceModel) -> View:
    joined = [(name, attributes) for name, attributes in model.join or model.rels.items()]
    return natural_join(model.rels, joined, model.project, model.where, model.keys, model.sources)


def _transaction(number: int, update: str | list[str], view: View) -> Transaction:
    texts = [update] if isinstance(update, str) else update
    if not texts:
        raise ValueError(f"update {number} is empty; write at least one insert or delete")
    deltas: dict[str, SignedBag] = {}
    for text in texts:
        relation, rows = parse_update(text)
        known(f"update {number}", [relation], set(view.relations))
        _fits(text, rows, view, relation)
        deltas[relation] = deltas.get(relation, SignedBag()) + rows
    homes = {view.homes[place] for place in view.places(deltas.keys())}
    if len(homes) > 1:
        raise ValueError(
            f"update {number} is a transaction over {', '.join(sorted(homes))}; one transaction is of one source"
        )
    return Transaction(homes.pop(), ", ".join(texts), deltas)


def _rows(where: str, text: str, view: View, relation: str) -> SignedBag:
    rows = parse_bag(text)
    _fits(where, rows, view, relation)
    return rows


def _fits(where: str, rows: SignedBag, view: View, relation: str) -> None:
    width = len(view.scans[view.places({relation})[0]].fields)
    wrong = next((row for row in rows if len(row) != width), None)
    if wrong is not None:
        raise ValueError(f"{where}: {relation} has {width} attributes, and a row has {len(wrong)} values")


def _comparable(view: View, bags: Iterable[tuple[str, SignedBag]]) -> None:
    """Refuse conditions that put texts and numbers in order; equality has no trouble with them."""
    held: dict[str, list[Any]] = {name: [] for scan in view.scans for name in names(scan.columns)}
    for relation, rows in bags:
        for place in view.places({relation}):
            for row in rows:
                for name, value in zip(names(view.scans[place].columns), row, strict=True):
                    held[name].append(value)
    for condition in view.conditions:
        match condition:
            case Call("<" | "<=" | ">" | ">=", args):
                values = [value for arg in args for value in _values(arg, held) if value is not None]
                kinds = {isinstance(value, str): value for value in values}
                if len(kinds) > 1:
                    raise ValueError(
                        f"where puts {kinds[True]!r} and {kinds[False]!r} in order; use values of one kind"
                    )


def _values(side: Scalar, held: Mapping[str, list[Any]]) -> list[Any]:
    """What may stand on one side of a comparison."""
    match side:
        case Col(name):
            return held[name]
        case Lit(value):
            return [value]
    return []


def _event(word: str, updates: int) -> Event:
    found = _EVENT.match(word)
    if found is None:
        raise ValueError(f"{word!r} is no event; there are S_up1, W_up1, S_qu1, W_ans1 (of update 1), and W_idle")
    if found[3]:
        return Event("W_idle", 0)
    number = int(found[2])
    if not 1 <= number <= updates:
        raise ValueError(f"event {word} is about update {number}; there are {updates}")
    kind: Any = found[1]
    return Event(kind, number)
