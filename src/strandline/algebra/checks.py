"""What would show that a constraint does not hold: plans that give the offending values, and nothing if it does.

That a constraint holds after a change is told from the change alone, given that it held before: for a foreign key,
values of which the change adds rows must be there after it, and keys that are gone must not be referred to any more. A
value that the change adds no rows of was referred to before, so its key was there, and is gone or still there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from strandline.algebra.constraints import AppendOnly, Assumed, Constraint, ForeignKey, NotNull
from strandline.algebra.differentiate.foreign_keys import counted
from strandline.algebra.plan import At, Change, Exists, Filter, Plan, Scan, State
from strandline.algebra.scalar import Call, Col, conjunction
from strandline.algebra.schema import Schema, names


@dataclass(frozen=True)
class Check:
    """A plan that gives the values which violate a constraint, and what they are."""

    constraint: Constraint
    plan: Plan
    found: str


@dataclass(frozen=True)
class Checks:
    """Checks over tables of which *fields* are known, at least those that constraints name.

    *keyed* are tables that are known to hold one row for each key.
    """

    fields: Mapping[str, Schema]
    keyed: Collection[str] = ()

    def after(self, constraint: Constraint, changed: Collection[str], known: Assumed) -> tuple[Check, ...]:
        """That a constraint which held before still holds after the changes, of which *known* says what they are."""
        match constraint:
            case ForeignKey():
                return (*self._referring(constraint, changed), *self._referred(constraint, changed, known))
            case NotNull(table, column) if table in changed:
                added = counted(self._scan(Change(table), (column,)), (column,), ">")
                return (Check(constraint, Filter(added, Call("is null", (Col("key 1"),))), "a new row has NULL"),)
            case NotNull() | AppendOnly():
                return ()

    def whole(self, constraint: Constraint, state: State) -> tuple[Check, ...]:
        """That a constraint holds in a state, whatever was before."""
        match constraint:
            case ForeignKey(table, columns, references, key):
                rows = counted(self._scan(At(table, state), columns), columns, ">")
                checks = [self._unmatched(constraint, rows, self._scan(At(references, state), key))]
                if references not in self.keyed:
                    several = _whole(counted(self._scan(At(references, state), key), key, ">", 1))
                    checks.append(Check(constraint, several, f"several rows of {references} have the key"))
                return tuple(checks)
            case NotNull(table, column):
                values = counted(self._scan(At(table, state), (column,)), (column,), ">")
                return (Check(constraint, Filter(values, Call("is null", (Col("key 1"),))), "a row has NULL"),)
            case AppendOnly():
                return ()

    def _referring(self, constraint: ForeignKey, changed: Collection[str]) -> tuple[Check, ...]:
        if constraint.table not in changed:
            return ()
        added = counted(self._scan(Change(constraint.table), constraint.columns), constraint.columns, ">")
        return (self._unmatched(constraint, added, self._scan(At(constraint.references, "post"), constraint.key)),)

    def _unmatched(self, constraint: ForeignKey, values: Plan, referred: Plan) -> Check:
        missing = _meeting(values, referred, constraint.key, negated=True)
        return Check(constraint, missing, f"{constraint.table} refers to what {constraint.references} does not have")

    def _referred(self, constraint: ForeignKey, changed: Collection[str], known: Assumed) -> tuple[Check, ...]:
        table, key = constraint.references, constraint.key
        if table not in changed:
            return ()
        change, parts = self._scan(Change(table), key), known.parts_of(table)
        checks = []
        if parts.gone:
            referring = self._scan(At(constraint.table, "post"), constraint.columns)
            gone = _meeting(counted(change, key, "<"), referring, constraint.columns)
            checks.append(Check(constraint, gone, f"{constraint.table} still refers to what is gone from {table}"))
        if parts.new and table not in self.keyed:
            twice = _whole(counted(change, key, ">", 1))
            checks.append(Check(constraint, twice, f"several new rows of {table} have the key"))
            there = _meeting(counted(change, key, ">"), self._scan(At(table, "pre"), key), key)
            checks.append(Check(constraint, there, f"a new row of {table} has the key of a row that is there"))
        return tuple(checks)

    def _scan(self, operand: At | Change, columns: Collection[str]) -> Scan:
        """Of a table only the columns in question: so a check is the same whichever view it is made for."""
        return Scan(operand, "", tuple(f for f in self.fields[operand.relation] if f.name in columns))


def _whole(values: Plan) -> Plan:
    """The *values* of which none is NULL."""
    there = conjunction(tuple(Call("is not null", (Col(name),)) for name in names(values.columns)))
    assert there is not None
    return Filter(values, there)


def _meeting(values: Plan, rows: Plan, columns: tuple[str, ...], *, negated: bool = False) -> Plan:
    """The *values* that are among those of *columns* in *rows*, or those that are not."""
    pairs = zip(names(values.columns), columns, strict=True)
    return Exists(_whole(values), rows, tuple((Col(ours), Col(theirs)) for ours, theirs in pairs), negated=negated)
