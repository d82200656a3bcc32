"""Advancing the leaves: before a refresh plans, copied sources are captured, and tables that must be are read anew.

Capturing and reading anew are safe to repeat. What they reach is recorded, and the plan that follows pins it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from strandline.catalog import CaptureRecord, Catalog, Json, Lease, NewVersion, VersionRecord
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.ingest.baselines import jdbc_rows
from strandline.ingest.capture import Captured, TableToCapture, capture
from strandline.ingest.copied import CopiedSource
from strandline.ingest.copies import COPIED, place_of
from strandline.ingest.logged import both, log_of, position_of
from strandline.reasons import Reason
from strandline.sources.protocol import CapturedSource, Health, Peek, Position, TableInfo, Wanted
from strandline.store.node import Node, renamed_select
from strandline.store.tables import fill, make_ready


@dataclass(frozen=True)
class CopyState:
    """What a refresh would find of a copied table.

    *position* is where its copy goes; *problem* is why it must stay where it is; *anew* is why the table, of about so
    many *bytes*, has to be read again before the refresh, which only a refresh itself does; *peek* is what happened
    between the copy and *position*, and *how* the copy takes it in.
    """

    position: Position = None
    problem: Reason | None = None
    anew: Reason | None = None
    peek: Peek = field(default_factory=lambda: Peek(()))
    bytes: int | None = None
    how: Reason = field(default_factory=lambda: Reason("CHANGES"))


def survey(
    catalog: Catalog, source: CopiedSource, copies: Sequence[Node], requested: Sequence[str], *, captured: bool
) -> dict[str, CopyState]:
    """Look at the copies of one source, with *captured* as far as its changes are in the log, else up to now."""
    record = catalog.captures.get(source.name)
    tables = source.inner.tables()
    health = None if record is None else source.inner.health(record.place, record.details)
    end = None if record is None else record.place if captured else max(record.place, source.inner.end())
    ahead = record is not None and end is not None and end > record.place
    pending = source.inner.pending(record.place, end, record.details) if ahead and record and end else {}
    bases = {node.name: catalog.versions.baseline(node.record.id) for node in copies}
    noted = {table_of(node): wanted(node, base) for node in copies if (base := bases[node.name]) is not None}
    changed = source.inner.changed_since(noted)
    found = {}
    for node in copies:
        base = bases[node.name]
        problem = problem_with(node, tables)
        if problem is not None:
            found[node.name] = CopyState(problem=problem)
            continue
        anew = _anew(node, record, base, health, changed, requested)
        if anew is not None or record is None or base is None or end is None:
            found[node.name] = CopyState(anew=anew, bytes=tables[table_of(node)].bytes)
            continue
        table = table_of(node)
        peek = source.peek(table, base.positions[node.name], position_of(record.log, record.place))
        peek = both(peek, pending[table]) if table in pending else peek
        found[node.name] = CopyState(position_of(record.log, end), peek=peek)
    return found


DOWN = ("SOURCE_UNREACHABLE", "SOURCE_LOST")
"""Codes of errors of a source that does not answer."""


def problem_of(error: SourceError) -> Reason:
    """Why the views over a source keep their last state, after an error of the source."""
    code = "SOURCE_UNREACHABLE" if error.code in (*DOWN, "SOURCE_BUSY") else "SOURCE_FAILED"
    return Reason(code, f"[{error.code}] {error.message}")


Followed = Callable[[CaptureRecord], Mapping[str, TableToCapture]]
"""The tables whose changes go on in a log, each by its name at the source."""


def take_in(
    catalog: Catalog,
    source: CapturedSource,
    followed: Followed,
    to_read: Sequence[str],
    storage_options: Mapping[str, str],
    lease: Lease,
    upto: int | None = None,
) -> Captured:
    """Capture the changes of one source, up to now or to a place; its log is begun if need be.

    The tables *to_read* will be read anew next, so from here on their changes must reach the log.
    """
    record = catalog.captures.get(source.name)
    health = None if record is None else source.health(record.place, record.details)
    if record is None or (health is not None and health.lost is not None):
        lost = health.lost if health else None
        if record is not None:
            source.close_log(record.details)
        opened = source.open_log(to_read)
        details: dict[str, Json] = {**opened.details, "lost": None if lost is None else dict(lost.to_dict())}
        record = catalog.captures.begin(source.name, uuid.uuid4().hex[:8], opened.place, details, lease)
    elif to_read:
        source.add_to_log(to_read, record.details)
    end = source.end() if upto is None else upto
    return capture(source, catalog, record, followed(record), end, storage_options, lease)[1]


def take_in_copies(
    catalog: Catalog,
    source: CopiedSource,
    copies: Sequence[Node],
    to_read: Sequence[str],
    storage_options: Mapping[str, str],
    lease: Lease,
    upto: int | None = None,
) -> Captured:
    """Capture the changes of the *copies* of one source; those named in *to_read* will be read anew next."""

    def followed(record: CaptureRecord) -> dict[str, TableToCapture]:
        return {
            table_of(node): TableToCapture(wanted(node, base), node.log_path)
            for node in copies
            if (base := catalog.versions.baseline(node.record.id)) is not None and _goes_on(record, node, base)
        }

    tables = [table_of(node) for node in copies if node.name in to_read]
    return take_in(catalog, source.inner, followed, tables, storage_options, lease, upto)


def read_anew(
    catalog: Catalog, engine: Engine, source: CopiedSource, node: Node, reason: Reason, keep_states: str, step_id: str
) -> NewVersion:
    """Fill a copy from the table itself, in one snapshot; what the log holds from now on is applied to that."""
    record = catalog.captures.get(source.name)
    assert record is not None
    base = catalog.versions.baseline(node.record.id)
    parsers = source.inner.parsers(table_of(node))
    names = [column.name for column in node.visible]
    with source.inner.baseline(table_of(node), names) as baseline:
        make_ready(engine, node, None if base is None else base.version, step_id)
        with jdbc_rows(engine, baseline, parsers, names, step_id.replace("-", "_")) as rows:
            parsed = renamed_select(rows, node.visible, node.stored)
            version = fill(engine, node, parsed, keep_states, step_id)
    position: dict[str, Json] = {"log": record.log, "place": record.place, "seen": baseline.seen}
    noted: dict[str, Json] = {"reason": dict(reason.to_dict()), "details": dict(baseline.details)}
    inputs: dict[str, Json] = {"@definition": node.record.fingerprint, COPIED: noted}
    return NewVersion(node.record.id, version, inputs, {node.name: position})


def goes_on(catalog: Catalog, source: CopiedSource, node: Node) -> bool:
    """Whether the log holds all changes of a copied table from its copy on."""
    record, base = catalog.captures.get(source.name), catalog.versions.baseline(node.record.id)
    return record is not None and base is not None and _goes_on(record, node, base)


def read_reason(base: VersionRecord | None) -> Reason | None:
    """Why a copy's table was read anew, if that is what made this version of it."""
    noted = base.inputs.get(COPIED) if base else None
    reason = noted.get("reason") if isinstance(noted, dict) else None
    return Reason(str(reason["code"]), str(reason["text"])) if isinstance(reason, dict) else None


def carried_on(base: VersionRecord) -> dict[str, Json]:
    """What the next version of a copy inherits: what was noted of the table when it was read."""
    return {COPIED: {"reason": None, "details": _noted(base)}}


def table_of(node: Node) -> str:
    """The name of a copied table in its source."""
    return node.name.split(".", 1)[1]


def wanted(node: Node, base: VersionRecord) -> Wanted:
    """What is to be captured of a table that was copied."""
    return Wanted(tuple(c.name for c in node.visible), _key(node), _noted(base))


def problem_with(node: Node, tables: Mapping[str, TableInfo]) -> Reason | None:
    """Why a copy cannot follow its table."""
    info = tables.get(table_of(node))
    if info is None:
        text = (
            f"{node.name} does not exist any more, or cannot be followed any more; `strandline source check` says why"
        )
        return Reason("SOURCE_TABLE_GONE", text)
    if info.problem is not None:
        return Reason("SOURCE_FAILED", f"[NO_REPLICA_IDENTITY] {node.name}: {info.problem}")
    if info.key != _key(node):
        now = f"({', '.join(info.key)})" if info.key else "none"
        return Reason("SOURCE_SCHEMA_CHANGED", f"the key of {node.name} was ({', '.join(_key(node))}) and is {now} now")
    types = {column.name: column.type for column in info.columns}
    for column in node.visible:
        if column.name not in types:
            text = (
                f"{node.name} has no column {column.name} any more; it has {', '.join(types)}; put it back, or "
                "redefine the views that read it with CREATE OR REPLACE"
            )
            return Reason("SOURCE_SCHEMA_CHANGED", text)
        if types[column.name] != column.type:
            text = (
                f"{node.name}.{column.name} was {column.type} and is {types[column.name]} now; a full refresh takes it "
                "as it is now"
            )
            return Reason("SOURCE_SCHEMA_CHANGED", text)
    return None


def _anew(
    node: Node,
    record: CaptureRecord | None,
    base: VersionRecord | None,
    health: Health | None,
    changed: Mapping[str, Reason],
    requested: Sequence[str],
) -> Reason | None:
    """Why the table has to be read again, if it has."""
    if base is None:
        return Reason("FIRST_FILL")
    if node.name in requested:
        return Reason("REQUESTED")
    if health is not None and health.lost is not None:
        return health.lost
    if record is None:
        return Reason("SLOT_LOST")
    if log_of(base.positions[node.name]) != record.log:
        lost = record.details.get("lost")
        return Reason(str(lost["code"]), str(lost["text"])) if isinstance(lost, dict) else Reason("SLOT_LOST")
    logged = record.tables.get(table_of(node))
    if logged is not None and logged.broken is not None and not _goes_on(record, node, base):
        code, _, text = logged.broken.partition(": ")
        return Reason(code, text)
    return changed.get(table_of(node))


def _goes_on(record: CaptureRecord, node: Node, base: VersionRecord) -> bool:
    position = base.positions[node.name]
    if log_of(position) != record.log:
        return False
    logged = record.tables.get(table_of(node))
    return logged is None or logged.broken_at is None or logged.broken_at < place_of(position)


def _noted(base: VersionRecord) -> dict[str, Json]:
    noted = base.inputs.get(COPIED)
    details = noted.get("details") if isinstance(noted, dict) else None
    return details if isinstance(details, dict) else {}


def _key(node: Node) -> tuple[str, ...]:
    key = node.record.options["key"]
    assert isinstance(key, list)
    return tuple(str(name) for name in key)
