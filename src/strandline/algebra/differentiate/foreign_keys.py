"""Inner join along foreign keys, strategy *bilinear*: the change of a table that others refer to falls into parts.

Let L refer to O, and the change of O be split by key into what is new, gone and changed: ``O⁺ = O* + C + G`` with
``O* = O⁻ + N``. No row of L refers to a key before it is there, nor after it is gone: ``L⁻ ⋈ N`` and ``L⁺ ⋈ G`` are
empty. With inputs ordered so that each comes before those it refers to,

    Δ(E1 ⋈ ... ⋈ En) = Σi  E1⁺ ⋈ ... ⋈ Ei-1⁺ ⋈ Di ⋈ Ei+1* ⋈ ... ⋈ En*

where Di is the changed part C of an input that is referred to, and else its whole delta; E* is E⁻ for an input that is
not referred to. For the product of all E⁺ less that of all E* telescopes into these terms and terms with a G, which are
empty, as an input before it refers to it; and the product of all E* is that of all E⁻, as in every other product the
first N stands beside the E⁻ of an input that refers to it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from strandline.algebra.constraints import Assumed, ForeignKey, Use, column_of, matched_columns
from strandline.algebra.plan import (
    COUNT,
    At,
    Change,
    Filter,
    GroupBy,
    Join,
    Output,
    Partial,
    Plan,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
    map_scans,
)
from strandline.algebra.scalar import Call, Col, Lit
from strandline.algebra.schema import Column
from strandline.algebra.term import Sum, Term, bind


@dataclass(frozen=True)
class Link:
    """The input at place *source* refers to the one at place *target*: pairs of their *columns* are equal."""

    source: int
    target: int
    foreign_key: ForeignKey
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Ordered:
    """The places of the inputs, each before those that it refers to by one of *links*."""

    places: tuple[int, ...]
    links: tuple[Link, ...]

    @property
    def targets(self) -> dict[int, ForeignKey]:
        """The inputs that are referred to, each with one of the keys that do."""
        return {link.target: link.foreign_key for link in self.links}


def ordered(node: Join, assumed: Assumed) -> Ordered:
    """The inputs from right to left, moved as far as the foreign keys between them ask for it."""
    links = _links(node, assumed.foreign_keys)
    waiting, places, used = list(reversed(range(len(node.inputs)))), list[int](), list[Link]()
    while waiting:
        free = [p for p in waiting if not any(k.target == p and k.source in waiting for k in links)]
        place = (free or waiting)[0]
        used.extend(link for link in links if link.target == place and link.source in places)
        waiting.remove(place)
        places.append(place)
    return Ordered(tuple(places), tuple(used))


def _links(node: Join, foreign_keys: Sequence[ForeignKey]) -> list[Link]:
    equated = [c.args for c in node.conditions if isinstance(c, Call) and c.op == "="]
    sides = [(column_of(a), column_of(b)) for a, b in equated]
    pairs = [(a, b) for a, b in sides if a is not None and b is not None]
    equal = pairs + [(b, a) for a, b in pairs]
    found = []
    for target, referred in enumerate(node.inputs):
        if not _single(referred):
            continue
        for foreign_key in foreign_keys:
            for source, referring in enumerate(node.inputs):
                columns = matched_columns(foreign_key, referring, referred, equal) if source != target else ()
                if columns:
                    found.append(Link(source, target, foreign_key, columns))
    return found


def _single(plan: Plan) -> bool:
    """Whether *plan* does nothing but filter and project the rows of one scan of a relation."""
    match plan:
        case Scan(operand=At()):
            return True
        case Filter(input=child) | Project(input=child):
            return _single(child)
        case _:
            return False


def delta(node: Join, below: Sequence[Sum], changed: Collection[str], order: Ordered, assumed: Assumed) -> Sum:
    """The sum of the terms above, without those that are known to be empty."""
    terms = []
    for at, place in enumerate(order.places):
        earlier, later = order.places[:at], order.places[at + 1 :]
        parts = _changed_rows(node, place, below[place], order, assumed)
        for term in parts:
            inputs = list(node.inputs)
            for other in earlier:
                inputs[other] = bind(node.inputs[other], "post", changed)
            for other in later:
                inputs[other] = _before_and_new(node.inputs[other], other, changed, order, assumed)
            inputs[place] = term.plan
            terms.append(Term(Join(tuple(inputs), node.conditions), term.sign))
    return tuple(terms)


def _changed_rows(node: Join, place: int, below: Sum, order: Ordered, assumed: Assumed) -> Sum:
    """D: of an input that is referred to only the rows that changed under the same key, else all."""
    foreign_key = order.targets.get(place)
    if foreign_key is None or not below:
        return below
    parts = assumed.parts_of(foreign_key.references)
    if not parts.changed:
        return ()
    if not parts.new and not parts.gone:
        return below
    return (Term(map_scans(node.inputs[place], lambda scan: part(scan, foreign_key.key, "="))),)


def _before_and_new(plan: Plan, place: int, changed: Collection[str], order: Ordered, assumed: Assumed) -> Plan:
    """E*: before the change, and what is new of an input that is referred to."""
    foreign_key = order.targets.get(place)
    if foreign_key is None or foreign_key.references not in changed:
        return bind(plan, "pre", changed)
    parts = assumed.parts_of(foreign_key.references)
    if not parts.new:
        return bind(plan, "pre", changed)
    if not parts.gone and not parts.changed:
        return bind(plan, "post", changed)

    def with_new(scan: Scan) -> Plan:
        old = replace(scan, operand=At(foreign_key.references, "pre"))
        return UnionAll((old, part(scan, foreign_key.key, ">")))

    return map_scans(plan, with_new)


def part(scan: Scan, key: Sequence[str], sign: str) -> Plan:
    """The rows of the change of a scanned table under keys of which there are more than before (``>``) or as many.

    A key identifies a row, so there is one more, one less, or a row changed.
    """
    change = replace(scan, operand=Change(_relation(scan)), key=())
    prefix = f"{scan.alias}." if scan.alias else ""
    values = tuple(f"{prefix}{name}" for name in key)
    return SemiJoin(change, tuple(map(Col, values)), counted(change, values, sign))


def counted(rows: Plan, columns: Sequence[str], sign: str, than: int = 0) -> Plan:
    """The values of *columns* of which *rows*, be they signed, has more (``>``), less (``<``) or as many as *than*."""
    types = {column.name: column.type for column in rows.columns}
    keys = tuple(Output(Column(f"key {n + 1}", types[name]), Col(name)) for n, name in enumerate(columns))
    numbers = GroupBy(rows, keys, (Partial(Column(COUNT, "bigint", False), "count"),), keep_empty=True)
    chosen = Filter(numbers, Call(sign, (Col(COUNT), Lit(than))))
    return Project(chosen, tuple(Output(key.column, Col(key.name)) for key in keys))


def _relation(scan: Scan) -> str:
    assert isinstance(scan.operand, At)
    return scan.operand.relation


def uses(node: Join, assumed: Assumed) -> list[Use]:
    """What the delta of a join owes to foreign keys."""
    effect = "rows that are new or gone meet no old rows that refer to them"
    return [Use(link.foreign_key, effect) for link in ordered(node, assumed).links]
