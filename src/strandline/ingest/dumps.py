"""Taking dumps: before a refresh it is found out which are new; in it each is compared with the copy of its table.

The copy is the old snapshot, so nothing else has to be kept. A dump is read once; what is found is a delta like any
other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from strandline.algebra.schema import Schema, names
from strandline.catalog import Catalog, Json, Lease, NewVersion, Transaction
from strandline.differential.compare import compare
from strandline.differential.outcome import Differential
from strandline.differential.report import AFTER, CHANGE_TYPE, INSERT
from strandline.differential.restating import restated
from strandline.differential.snapshot import Snapshot, snapshot
from strandline.differential.unreadable import Unreadable
from strandline.engine import places
from strandline.engine.session import Engine
from strandline.errors import DifferentialError, SourceError
from strandline.ingest.advance import CopyState, problem_with, table_of
from strandline.ingest.copies import COPIED, place_of
from strandline.ingest.dumped import DumpedSource, dump_name, made_at
from strandline.ingest.leaf import ingest
from strandline.reasons import Reason
from strandline.sources.protocol import Position
from strandline.sql.names import literal, quoted, quoted_list
from strandline.sql.relations import empty_select
from strandline.sql.render import SIGN
from strandline.store.deltas import Delta
from strandline.store.node import Node
from strandline.store.tables import fill, make_ready

_FLAG = re.compile(r" \(--[^)]*\)")
"""What an error of ``strandline diff`` says of its options."""


@dataclass(frozen=True)
class TakenDump:
    """What was found in a dump: the delta of the copy, and how it was found."""

    delta: Delta
    how: str
    set_aside: dict[str, Json]


def survey_dumps(
    catalog: Catalog, source: DumpedSource, copies: Sequence[Node], requested: Sequence[str], *, only_look: bool
) -> dict[str, CopyState]:
    """Look at the copies of one source; with *only_look* at nothing that would have to be read for it."""
    known = source.known() if only_look and not source.inner.peekable else source.tables()
    gone = {node.name: problem_with(node, known) for node in copies if table_of(node) not in known}
    found = {name: CopyState(problem=problem) for name, problem in gone.items()}
    for node in copies:
        if node.name in gone:
            continue
        base = catalog.versions.baseline(node.record.id)
        shown = None if base is None else base.positions[node.name]
        coming = source.next(table_of(node), shown)
        problem = coming.problem or problem_with(node, known)
        anew = base is None or node.name in requested
        if anew and shown is not None and problem is None:
            coming = source.next(table_of(node), None)
        if anew and problem is None and not coming.changed:
            waiting = f"; {coming.note}" if coming.note else ""
            problem = Reason("SOURCE_FAILED", f"[NO_DUMP] there is no whole dump of {node.name}{waiting}")
        if problem is not None:
            found[node.name] = CopyState(problem=problem)
        elif anew:
            reason = Reason("FIRST_FILL" if base is None else "REQUESTED")
            found[node.name] = CopyState(coming.position, anew=reason, bytes=coming.peek.bytes)
        else:
            found[node.name] = CopyState(
                coming.position, peek=coming.peek, how=_how(coming.position, shown, coming.note)
            )
    return found


def load_dump(
    catalog: Catalog,
    engine: Engine,
    source: DumpedSource,
    node: Node,
    position: Position,
    reason: Reason,
    keep_states: str,
    step_id: str,
    folder: str,
    lease: Lease,
) -> tuple[NewVersion, str]:
    """Fill a copy from a dump; what is written on the way goes below *folder*. The new version, and how it was read."""
    base = catalog.versions.baseline(node.record.id)
    with _compared(engine, source, node, position, _nothing(engine, node), folder) as found:
        rows = empty_select(node.stored)
        if found.counts.total:
            rows = f"SELECT {quoted_list(names(node.stored))} FROM parquet.{quoted(found.report)}"
        make_ready(engine, node, None if base is None else base.version, step_id)
        version = fill(engine, node, rows, keep_states, step_id)
        how = _told_of(found)
    catalog.unit_of_work.append(node.name, [], position, lease=lease)
    noted: dict[str, Json] = {"reason": dict(reason.to_dict()), "details": {}}
    inputs: dict[str, Json] = {"@definition": node.record.fingerprint, COPIED: noted}
    return NewVersion(node.record.id, version, inputs, {node.name: position}), how


def take_dump(
    engine: Engine,
    source: DumpedSource,
    node: Node,
    version: int,
    position: Position,
    path: str,
) -> TakenDump:
    """Store at *path* the delta that leads from a version of the copy to a dump."""
    old = snapshot(f"{node.path}@v{version}", engine.storage_options)
    table = table_of(node)
    with _compared(engine, source, node, position, old, path) as found:
        if _rows(position) is None:
            problem = source.held_back(table, position, old.rows or 0, found.rows[1])
            if problem is not None:
                raise SourceError(problem.code, problem.text)
        delta = Delta(path, 0, 0)
        if found.counts.total:
            delta = ingest(engine, node.name, _signed(found.report, node.stored), node.stored, path)
        how, aside = _told_of(found), found.unreadable["new"]
    return TakenDump(delta, how, {"count": aside.count, "first": list(aside.first)})


def log_dump(catalog: Catalog, node: Node, position: Position, delta: Delta, lease: Lease) -> None:
    """Note a dump that was taken as a transaction of its table; one without changes is none."""
    counts = {"inserted": delta.inserted, "deleted": delta.deleted}
    changed = {what: count for what, count in counts.items() if count}
    taken = Transaction(position, dump_name(position), made_at(position), place_of(position), changed)
    catalog.unit_of_work.append(node.name, [taken] if changed else [], position, lease=lease)


def dump_rows(engine: Engine, source: DumpedSource, node: Node, position: Position, folder: str) -> str:
    """A SELECT of the rows of a dump, which are written below *folder*."""
    with _compared(engine, source, node, position, _nothing(engine, node), folder) as found:
        if not found.counts.total:
            return empty_select(node.visible)
        shown = [f"{quoted(s.name)} AS {quoted(c.name)}" for c, s in zip(node.visible, node.stored, strict=True)]
        return f"SELECT {', '.join(shown)} FROM parquet.{quoted(found.report)}"


@contextmanager
def _compared(
    engine: Engine, source: DumpedSource, node: Node, position: Position, old: Snapshot, folder: str
) -> Iterator[Differential]:
    """What leads from *old*, which has the stored columns, to a dump; with files below *folder* that stay."""
    table, report = table_of(node), f"{folder}-report"
    policy = source.inner.rules(table).unreadable
    for left in (report, f"{folder}-dump", f"{folder}-renamed"):
        places.remove(left, engine.storage_options)
    assert isinstance(position, dict)
    aside = Unreadable(dump_name(position))
    try:
        with source.inner.opened(table, position, node.visible, f"{folder}-dump") as dump:
            if names(node.stored) != names(node.visible):
                assert old.schema is not None
                dump = restated(engine, dump, names(node.visible), old.schema, f"{folder}-renamed", aside, policy)
            found = compare(
                engine,
                old,
                dump,
                key=node.key or None,
                bag=not node.key,
                algorithm="ph" if "://" in folder else "auto",
                output=report,
                unreadable=policy,
            )
    except DifferentialError as error:
        what = f"dump {dump_name(position)} of {node.name} cannot be taken: {_FLAG.sub('', error.message)}"
        raise SourceError(error.code, what, excerpt=error.excerpt) from error
    found.unreadable["new"].add(aside.count, aside.first)
    yield found


def _nothing(engine: Engine, node: Node) -> Snapshot:
    """A table like the copy, without rows."""
    schema = engine.arrow_schema(empty_select(node.stored))
    return Snapshot("nothing", "parquet", files=(), schema=schema, bytes=0, rows=0)


def _signed(report: str, columns: Schema) -> str:
    came = ", ".join(literal(kind) for kind in (INSERT, AFTER))
    sign = f"CASE WHEN {CHANGE_TYPE} IN ({came}) THEN 1 ELSE -1 END AS {SIGN}"
    return f"SELECT {quoted_list(names(columns))}, {sign} FROM parquet.{quoted(report)}"


def _told_of(found: Differential) -> str:
    aside = found.unreadable["new"]
    told = f"{found.algorithm}: {found.reason}"
    return f"{told}; {aside.count:,} rows that cannot be read were set aside" if aside.count else told


def _how(position: Position, after: Position, note: str | None) -> Reason:
    detail = f"dump {dump_name(position)} is compared with the copy, which shows {dump_name(after)}"
    return Reason("DUMP_COMPARED", f"{detail}; {note}" if note else detail)


def _rows(position: Position) -> int | None:
    rows = position["rows"] if isinstance(position, dict) else None
    return rows if isinstance(rows, int) else None
