"""The views and rows of the two cost studies, made so that what a run counts is what the formulas say.

Zhuge et al., section 6: three relations in a chain at one source, *C* rows each, *J* of them for each join value, and a
selection that half of all rows pass. Independent random columns would not do: the formulas let every pair of updates
join, and *J* stay as it is. So all updates meet in one join value, each insert is followed by its delete, and the
selection compares three bits, one of each relation: whichever two of them are fixed, half of the third's rows pass.

Wang et al., section 4: *n* relations in a chain, each at a source of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.plan import At, Output, Scan
from strandline.algebra.scalar import Call, Col, Lit, Scalar, equality
from strandline.algebra.schema import Column
from strandline.integrate.costs import Parameters
from strandline.integrate.view import View

Rows = dict[str, SignedBag]


@dataclass(frozen=True)
class Commit:
    """A transaction of *source*: signed rows of one relation."""

    source: str
    relation: str
    rows: SignedBag

    @property
    def deltas(self) -> Rows:
        return {self.relation: self.rows}


def _scan(source: str, name: str, *fields: str, key: tuple[str, ...] = ()) -> Scan:
    columns = tuple(Column(field, "bigint") for field in fields)
    return Scan(At(f"{source}.{name}"), name, columns, key)


# One source


def three_relations() -> View:
    """``pi_{W,Z}(sigma(r1(W,X) >< r2(X,Y) >< r3(Y,Z)))``; *bit* is what the selection reads of each."""
    scans = (
        _scan("s", "r1", "w", "x", "bit"),
        _scan("s", "r2", "x", "y", "n", "bit"),
        _scan("s", "r3", "y", "z", "bit"),
    )
    joins = (equality("r1.x", "r2.x"), equality("r2.y", "r3.y"))
    outputs = tuple(Output(Column(name, "bigint"), Col(name)) for name in ("r1.w", "r3.z"))
    return View(scans, (*joins, _even("r1.bit", "r2.bit", "r3.bit")), outputs, ("s", "s", "s"))


def _even(first: str, second: str, third: str) -> Scalar:
    """Whether three bits sum to an even number, by comparisons alone, which every evaluator has."""
    equal, unequal = Call("=", (Col(second), Col(third))), Call("<>", (Col(second), Col(third)))
    zero, one = (Call("=", (Col(first), Lit(bit))) for bit in (0, 1))
    return Call("or", (Call("and", (zero, equal)), Call("and", (one, unequal))))


def three_bags(p: Parameters) -> Rows:
    """*C* rows for each relation, *J* for each join value."""
    rows: dict[str, list[Row]] = {"s.r1": [], "s.r2": [], "s.r3": []}
    for value in range(p.rows // p.fanout):
        for n in range(p.fanout):
            rows["s.r1"].append((10 + n, value, n % 2))
            rows["s.r2"].append((value, value, n, n % 2))
            rows["s.r3"].append((value, 20 + n, n % 2))
    return {name: SignedBag.of(found) for name, found in rows.items()}


def in_pairs(updates: int, start: int = 0) -> list[Commit]:
    """An even number of updates going round the relations: a tuple of join value 0 is inserted, then deleted.

    *start* is the place of the relation that comes first.
    """
    assert updates % 2 == 0, "each insert is followed by its delete"
    found = []
    for pair in range(updates // 2):
        fresh, bit = 100 + pair, pair // 3 % 2
        tuples = (("s.r1", (fresh, 0, bit)), ("s.r2", (0, 0, fresh, bit)), ("s.r3", (0, fresh, bit)))
        relation, row = tuples[(start + pair) % 3]
        found += [Commit("s", relation, SignedBag([(row, sign)])) for sign in (1, -1)]
    return found


def by_relation(commits: Sequence[Commit]) -> tuple[int, int, int]:
    """How many updates go to each of the three relations."""
    first, second, third = (sum(commit.relation == f"s.r{n}" for commit in commits) for n in (1, 2, 3))
    return first, second, third


# Several sources


def chain(relations: int) -> View:
    """``r1 >< ... >< rn``, each at a source of its own; the view shows all keys."""
    numbers = range(1, relations + 1)
    scans = tuple(_scan(f"s{n}", f"r{n}", "id", "before", "after", key=("id",)) for n in numbers)
    joins = tuple(equality(f"r{n}.after", f"r{n + 1}.before") for n in numbers if n < relations)
    outputs = tuple(Output(Column(f"r{n}.id", "bigint"), Col(f"r{n}.id")) for n in numbers)
    return View(scans, joins, outputs, tuple(f"s{n}" for n in numbers))


def chain_bags(relations: int, rows: int = 20) -> Rows:
    """Row *i* of each relation joins with row *i* of its neighbours; the first ones have join value 0 besides."""
    return {f"s{n}.r{n}": SignedBag.of([(i, i, i) for i in range(rows)]) for n in range(1, relations + 1)}


def insert(number: int, key: int, value: int) -> Commit:
    """A row of the relation with that *number*, which joins by *value*."""
    return Commit(f"s{number}", f"s{number}.r{number}", SignedBag([((key, value, value), 1)]))


def meeting(relations: int, concurrent: int) -> tuple[Rows, list[Commit]]:
    """Rows, and an insert into the first relation during which *concurrent* rows of every other one are deleted.

    The rows that go would all have joined with the one that comes.
    """
    rows = chain_bags(relations)
    deletes: list[Commit] = []
    for number in range(2, relations + 1):
        doomed: Sequence[Row] = [(100 + i, 0, 0) for i in range(concurrent)]
        name = f"s{number}.r{number}"
        rows[name] = rows[name] + SignedBag.of(doomed)
        deletes += [Commit(f"s{number}", name, SignedBag([(row, -1)])) for row in doomed]
    return rows, [insert(1, 100, 0), *deletes]
