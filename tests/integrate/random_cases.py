"""Random views over random sources, with random transactions; small values, so that rows join and repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.plan import At, Output, Scan
from strandline.algebra.scalar import Call, Col, Lit, Scalar, equality
from strandline.algebra.schema import Column
from strandline.integrate.view import View

VALUES = 3
KEYS = 4


@dataclass(frozen=True)
class Case:
    """A view, the rows of its relations at first, and the transactions of each source."""

    view: View
    relations: Mapping[str, SignedBag]
    scripts: Mapping[str, Sequence[Mapping[str, SignedBag]]]


def random_case(random: Random, *, keyed: bool, sources: int) -> Case:
    """A view of 2 to 5 places over at most *sources* sources; *keyed*: every relation has a key, and it shows all."""
    view = _view(random, keyed, sources)
    relations: dict[str, SignedBag] = {}
    for relation in dict.fromkeys(view.relations):
        relations[relation] = SignedBag()
        for _ in range(random.randrange(4)):
            relations[relation] = relations[relation] + _insert(random, relations[relation], keyed)
    return Case(view, relations, _scripts(random, view, relations, keyed))


def _view(random: Random, keyed: bool, sources: int) -> View:
    places = random.choice((2, 2, 3, 3, 4, 5))
    names = [f"r{random.randrange(places) if random.random() < 0.25 else place}" for place in range(places)]
    homes = {name: f"s{random.randrange(sources)}" for name in dict.fromkeys(names)}
    key = ("k",) if keyed else ()
    fields = tuple(Column(name, "bigint") for name in (*key, "a", "b"))
    scans = tuple(Scan(At(name), f"p{place}", fields, key) for place, name in enumerate(names))
    conditions: list[Scalar] = []
    for place in range(1, places):
        if random.random() < 0.9:
            other = place - 1 if random.random() < 0.7 else random.randrange(place)
            conditions.append(equality(f"p{other}.b", f"p{place}.a"))
    if random.random() < 0.3:
        place = random.randrange(places)
        conditions.append(Call("<", (Col(f"p{place}.b"), Lit(2))))
    if random.random() < 0.3:
        conditions.append(Call("<=", (Col("p0.a"), Col(f"p{places - 1}.b"))))
    shown = [f"p{place}.k" for place in range(places)] if keyed else []
    shown += [f"p{random.randrange(places)}.{random.choice('ab')}" for _ in range(random.randrange(1, 3))]
    outputs = tuple(Output(Column(name, "bigint"), Col(name)) for name in dict.fromkeys(shown))
    return View(scans, tuple(conditions), outputs, tuple(homes[name] for name in names))


def _scripts(
    random: Random, view: View, relations: Mapping[str, SignedBag], keyed: bool
) -> dict[str, list[Mapping[str, SignedBag]]]:
    current = dict(relations)
    scripts: dict[str, list[Mapping[str, SignedBag]]] = {source: [] for source in view.sources}
    for _ in range(random.randrange(1, 6)):
        source = random.choice(view.sources)
        own = sorted({r for r, home in zip(view.relations, view.homes, strict=True) if home == source})
        deltas: dict[str, SignedBag] = {}
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            relation = random.choice(own)
            change = _change(random, current[relation], keyed)
            current[relation] = current[relation] + change
            deltas[relation] = deltas.get(relation, SignedBag()) + change
        scripts[source].append(deltas)
    return scripts


def _change(random: Random, rows: SignedBag, keyed: bool) -> SignedBag:
    """An insert, a delete, or a row that is changed."""
    kind = random.randrange(5)
    if kind < 2 or not rows:
        return _insert(random, rows, keyed)
    old = random.choice(sorted(rows))
    if kind < 4:
        return SignedBag([(old, -1)])
    return SignedBag([(old, -1), ((*old[:-2], *_values(random)), 1)])


def _insert(random: Random, rows: SignedBag, keyed: bool) -> SignedBag:
    if not keyed:
        return SignedBag.of([_values(random)])
    free = [key for key in range(KEYS) if key not in {row[0] for row in rows}]
    return SignedBag.of([(random.choice(free), *_values(random))] if free else [])


def _values(random: Random) -> Row:
    return (random.randrange(VALUES), random.randrange(VALUES))
