"""Declared constraints in a refresh: which ones a node relies on, whether they hold, and what they say of its changes.

A version of a node notes which constraints were found to hold in what it shows. From then on the changes alone are
looked at, before anything is computed from them. A constraint that was not found to hold yet is looked at in full, and
used from the next refresh on. Where a node is recomputed without its changes, a foreign key that held before is not
looked at: the next refresh by changes does that, if there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from strandline.algebra.block import Block
from strandline.algebra.checks import Check, Checks
from strandline.algebra.constraints import (
    AppendOnly,
    Assumed,
    Constraint,
    ForeignKey,
    NotNull,
    Parts,
    Use,
)
from strandline.algebra.differentiate import relied_on
from strandline.algebra.equality import equal_is_same
from strandline.algebra.schema import names
from strandline.algebra.term import bind
from strandline.catalog import Catalog, Json
from strandline.errors import RefreshError
from strandline.ingest.copied import CopiedSource
from strandline.propagate.binding import Pins
from strandline.propagate.context import Context
from strandline.propagate.here import Here
from strandline.reasons import Reason
from strandline.sql.names import quoted
from strandline.store.deltas import Delta
from strandline.store.netting import by_key
from strandline.store.node import Node

CONSTRAINTS = "@constraints"
"""Among the inputs of a version: the constraints that were looked at, and whether they hold in what it shows."""

HOLDS, BROKEN, HELD = "holds", "broken", "held before"
"""Verdicts. What *held before* was not looked at since the node was recomputed."""

SHOWN = 3
"""How many values that violate a constraint are named."""


def declared(catalog: Catalog) -> tuple[Constraint, ...]:
    """The constraints that sources declare on tables which views read."""
    return declared_with(catalog, {leaf.name: leaf.key for leaf in catalog.leaves.all()})


def declared_with(catalog: Catalog, keys: Mapping[str, Sequence[str]]) -> tuple[Constraint, ...]:
    """The constraints that sources declare, where tables have these *keys*."""
    found: list[Constraint] = []
    for record in catalog.sources.all():
        stated: Any = record.config.get("constraints") or {}
        for table, given in stated.items():
            name = f"{record.name}.{table}"
            found.extend(_foreign_keys(record.name, name, given.get("foreign_keys", ()), keys))
            found.extend(NotNull(name, column) for column in given.get("not_null", ()))
            found.extend([AppendOnly(name)] if given.get("append_only") else [])
    return tuple(found)


def _foreign_keys(
    source: str, table: str, stated: Iterable[Mapping[str, Any]], keys: Mapping[str, Sequence[str]]
) -> Iterable[ForeignKey]:
    for given in stated:
        referred = given["references"] if "." in given["references"] else f"{source}.{given['references']}"
        known = tuple(keys.get(referred, ()))
        key = tuple(given.get("key") or known)
        if known and set(key) == set(known) and len(key) == len(given["columns"]):
            yield ForeignKey(table, tuple(given["columns"]), referred, key)


def uses_of(node: Node, constraints: Sequence[Constraint]) -> tuple[Use, ...]:
    """What of *constraints* the changes of a node are computed by."""
    return () if node.block is None or node.policy == "FULL" else uses_in(node.block, constraints)


def uses_in(block: Block, constraints: Sequence[Constraint]) -> tuple[Use, ...]:
    """What of *constraints* the changes of a block are computed by."""
    grown = [c for c in constraints if isinstance(c, AppendOnly) and c.table in block.inputs]
    uses = relied_on(block.body, Assumed(tuple(constraints)))
    return (*uses, *(Use(constraint, "its changes only insert") for constraint in grown))


def noted(pinned: Mapping[str, Json]) -> dict[str, str]:
    """What a version notes of constraints."""
    found: Any = pinned.get(CONSTRAINTS) or {}
    return dict(found)


def found_by(versions: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """What at least one of several versions, which have seen the same, found to hold now, or else before."""
    return {
        name: verdict
        for wanted in (HELD, HOLDS)
        for seen in versions
        for name, verdict in noted(seen).items()
        if verdict == wanted
    }


def usable(uses: Iterable[Use], pinned: Mapping[str, Json]) -> tuple[Constraint, ...]:
    """The constraints that a node can rely on, given what its version notes; what held before is to be looked at."""
    known = noted(pinned)
    constraints = dict.fromkeys(use.constraint for use in uses)
    return tuple(c for c in constraints if isinstance(c, AppendOnly) or known.get(str(c)) in (HOLDS, HELD))


def planned_by(
    node: Node, constraints: Sequence[Constraint], pinned: Mapping[str, Json], growing: Collection[str]
) -> tuple[Assumed, tuple[str, ...]]:
    """What a plan can count on, and how it says so; the changes of the inputs *growing* only insert."""
    uses = uses_of(node, constraints)
    constraints = usable(uses, pinned)
    lines = []
    for use in uses:
        if noted(pinned).get(str(use.constraint)) == HELD:
            lines.append(f"{use}; looked at in full first, as the view was recomputed since it was found to hold")
        elif use.constraint in constraints:
            lines.append(str(use))
        elif noted(pinned).get(str(use.constraint)) == BROKEN:
            lines.append(f"{use.constraint}: not used, it did not hold; a full refresh looks at it again")
        else:
            lines.append(f"{use.constraint}: not used before it was found to hold; this refresh looks at it")
    parts = {name: Parts(gone=False, changed=False) for name in growing}
    return Assumed(constraints, parts), tuple(lines)


@dataclass(frozen=True)
class Found:
    """What a node's changes may be computed by, what its new version notes, and what was set aside."""

    assumed: Assumed = field(default_factory=Assumed)
    noted: Mapping[str, str] = field(default_factory=dict)
    how: str | None = None


class ConstraintChecks:
    """Checks of one refresh; what several nodes ask is looked at once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._declared = declared(context.catalog)
        self._known: dict[str, list[str]] = {}
        self._asking = Lock()

    def filled(self, node: Node, pins: Mapping[str, Json]) -> Found:
        """What a version that is filled from inputs at *pins* can note."""
        uses = uses_of(node, self._declared)
        return self._whole(node, Pins(node, None, pins, pins, {}, {}), [use.constraint for use in uses])

    def recomputed(self, node: Node, pins: Pins, deltas: Mapping[str, Delta] | None) -> Found:
        """What a version can note that is computed anew although changes would do, which may be there all the same.

        Whether a foreign key that held still does matters to changes alone, and without them costs a join of all rows.
        So that waits for the next refresh by changes; but not where it would be an error.
        """
        uses, seen = uses_of(node, self._declared), noted(pins.pre)
        waits = (HELD, HOLDS) if deltas is None else (HELD,)
        constraints = dict.fromkeys(use.constraint for use in uses)
        put_off = [c for c in constraints if seen.get(str(c)) in waits and self._can_wait(c)]
        uses = tuple(use for use in uses if use.constraint not in put_off)
        if deltas is None:
            found = self._whole(node, pins, [use.constraint for use in uses])
        else:
            found = self._by_changes(node, uses, pins, deltas)
        return replace(found, noted={**found.noted, **{str(c): HELD for c in put_off}})

    def changed(self, node: Node, pins: Pins, deltas: Mapping[str, Delta]) -> Found:
        """What the changes of a node can be computed by; an error if what it relies on does not hold any more."""
        return self._by_changes(node, uses_of(node, self._declared), pins, deltas)

    def _by_changes(self, node: Node, uses: Sequence[Use], pins: Pins, deltas: Mapping[str, Delta]) -> Found:
        if not uses:
            return Found()
        for use in uses:
            if isinstance(use.constraint, AppendOnly):
                _only_inserted(node, use.constraint, deltas)
        relied, found_broken = self._relied_on(node, uses, pins, deltas)
        held, broken = self._still_holding(node, relied, pins, deltas)
        still = {name: verdict for name, verdict in noted(pins.pre).items() if verdict == BROKEN}
        waiting = (use.constraint for use in uses if use.constraint not in relied and str(use.constraint) not in still)
        looked = self._whole(node, pins, waiting)
        kept = {str(c): HOLDS for c in held.constraints if not isinstance(c, AppendOnly)}
        told = "; ".join(dict.fromkeys(filter(None, (found_broken, *broken.values(), looked.how))))
        return Found(held, {**still, **kept, **looked.noted}, told or None)

    def shared(self, node: Node, pins: Pins, deltas: Mapping[str, Delta]) -> Assumed:
        """What the delta of a join can be computed by, of what its readers found to hold."""
        relied, _ = self._relied_on(node, uses_of(node, self._declared), pins, deltas)
        return self._still_holding(node, relied, pins, deltas)[0]

    def _relied_on(
        self, node: Node, uses: Sequence[Use], pins: Pins, deltas: Mapping[str, Delta]
    ) -> tuple[Sequence[Constraint], str | None]:
        """The constraints that hold in what a node shows; what held before is looked at, and it is told what is not.

        A table that did not change is read as it is now: its earlier version may be gone.
        """
        found = usable(uses, pins.pre)
        put_off = [c for c in found if noted(pins.pre).get(str(c)) == HELD]
        checks = [check for c in put_off for check in self._checks(node).whole(c, "current")]
        shown = [replace(check, plan=bind(check.plan, "pre", deltas.keys())) for check in checks]
        broken = self._judged(self._violations(shown, pins))
        return [c for c in found if c not in broken], "; ".join(broken.values()) or None

    def _still_holding(
        self, node: Node, relied: Sequence[Constraint], pins: Pins, deltas: Mapping[str, Delta]
    ) -> tuple[Assumed, dict[Constraint, str]]:
        """Which constraints of those that held hold after the changes as well; and what was set aside."""
        touched = {name: delta for name, delta in deltas.items() if delta.rows}
        known = self._measured(node, relied, touched)
        checks = self._checks(node)
        tests = [check for c in relied for check in checks.after(c, touched.keys(), known)]
        broken = self._judged(self._violations(tests, pins))
        return replace(known, constraints=tuple(c for c in relied if c not in broken)), broken

    def _whole(self, node: Node, pins: Pins, constraints: Iterable[Constraint]) -> Found:
        """Whether constraints hold in what a node is to show."""
        wanted = [c for c in dict.fromkeys(constraints) if not isinstance(c, AppendOnly)]
        tests = [check for c in wanted for check in self._checks(node).whole(c, "post")]
        broken = self._judged(self._violations(tests, pins))
        verdicts = {str(c): BROKEN if c in broken else HOLDS for c in wanted}
        return Found(Assumed(), verdicts, "; ".join(broken.values()) or None)

    def _judged(self, found: Mapping[Check, Sequence[str]]) -> dict[Constraint, str]:
        """What was violated and can be done without, and why; anything else is an error."""
        set_aside: dict[Constraint, str] = {}
        for check, values in found.items():
            what = check.found if isinstance(check.constraint, NotNull) else f"{check.found}: {'; '.join(values)}"
            if not self._can_wait(check.constraint):
                raise _violated(check.constraint, what)
            told = Reason("CONSTRAINT_SET_ASIDE", f"{check.constraint} does not hold at these positions ({what})")
            set_aside.setdefault(check.constraint, str(told))
        return set_aside

    def _can_wait(self, constraint: Constraint) -> bool:
        """Whether it is no error that a constraint does not hold: its two tables may be seen at different moments."""
        return isinstance(constraint, ForeignKey) and not self._in_one_order(constraint)

    def _in_one_order(self, constraint: ForeignKey) -> bool:
        """Whether both tables are always seen after the same transactions of one source."""
        ours, theirs = (name.split(".", 1)[0] for name in (constraint.table, constraint.references))
        return ours == theirs and isinstance(self._context.sources.get(ours), CopiedSource)

    def _checks(self, node: Node) -> Checks:
        fields = {name: node.uses(name) for name in node.inputs}
        nodes = self._context.vdag.nodes
        return Checks(fields, [name for name in node.inputs if name in nodes and nodes[name].copied])

    def _violations(self, checks: Sequence[Check], pins: Pins) -> Mapping[Check, Sequence[str]]:
        """The checks that give values, with the first few of them; what another node asked is known."""
        texts = {check: self._text(check, pins) for check in checks}
        with self._asking:
            here = Here(self._context.engine, self._context.binding)
            for check, text in texts.items():
                if text not in self._known and (rows := here.rows(check.plan, pins)) is not None and not rows.num_rows:
                    self._known[text] = []
            unknown = [text for text in dict.fromkeys(texts.values()) if text not in self._known]
            found: dict[str, list[str]] = {text: [] for text in unknown}
            numbered = [f"SELECT {number} AS number, shown FROM ({text})" for number, text in enumerate(unknown)]
            for number, value in self._context.engine.rows(" UNION ALL ".join(numbered)) if numbered else ():
                found[unknown[int(number)]].append(str(value))
            self._known.update(found)
        return {check: self._known[text] for check, text in texts.items() if self._known[text]}

    def _text(self, check: Check, pins: Pins) -> str:
        rows = self._context.binding.sql(check.plan, pins)
        values = [f"coalesce(CAST({quoted(name)} AS STRING), 'NULL')" for name in names(check.plan.columns)]
        return f"SELECT concat_ws(', ', {', '.join(values)}) AS shown FROM ({rows}) LIMIT {SHOWN}"

    def _measured(self, node: Node, constraints: Sequence[Constraint], deltas: Mapping[str, Delta]) -> Assumed:
        """Which parts the changes of referred tables have."""
        keys = {c.references: c.key for c in constraints if isinstance(c, ForeignKey) and c.references in deltas}
        return Assumed((), {table: self._parts(node, table, key, deltas[table]) for table, key in keys.items()})

    def _parts(self, node: Node, table: str, key: Sequence[str], delta: Delta) -> Parts:
        fields = {column.name: column for column in node.uses(table)}
        if not all(equal_is_same(fields[name].type) for name in key):
            return Parts()
        columns = self._context.binding.stored_names(table, tuple(fields[name] for name in key))
        return Parts(*by_key(delta, columns, self._context.engine.storage_options))


def _only_inserted(node: Node, constraint: AppendOnly, deltas: Mapping[str, Delta]) -> None:
    delta = deltas.get(constraint.table)
    if delta is not None and delta.deleted:
        gone = f"{delta.deleted} of its rows {'was' if delta.deleted == 1 else 'were'} deleted or changed"
        raise _violated(constraint, gone, f", take it as it is by `strandline refresh --full {node.name}`")


def _violated(constraint: Constraint, what: str, otherwise: str = "") -> RefreshError:
    source = constraint.table.split(".", 1)[0]
    return RefreshError(
        "CONSTRAINT_VIOLATED",
        f"{constraint} does not hold: {what}; correct the source and refresh{otherwise}, or take the constraint out of "
        f"sources/{source}.yml.",
    )
