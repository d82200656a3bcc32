"""The state of an algorithm as text: names of bags, numbers and terms, never rows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any, TypeVar

from strandline.algebra.codec import from_json, to_json
from strandline.algebra.plan import Bag, Change, scans
from strandline.algebra.term import Term
from strandline.integrate.messages import Answer, Delta, Evaluate, Install, Part, Query, Update, come, delta, gone

State = TypeVar("State")

_CLASSES: dict[str, type[Any]] = {cls.__name__: cls for cls in (Answer, Delta, Evaluate, Install, Part, Query, Update)}


def part_of_states(cls: type[State]) -> type[State]:
    """Make a frozen dataclass one that states may hold."""
    _CLASSES[cls.__name__] = cls
    return cls


def dump(state: object) -> str:
    """*state* as JSON text."""
    return json.dumps(to_json(state))


def load(text: str) -> Any:
    """The inverse of :func:`dump`."""
    return from_json(json.loads(text), _CLASSES)


def operands(value: object) -> Iterator[Bag | Change]:
    """The bags that a state refers to."""
    if isinstance(value, Bag | Change):
        yield value
    elif isinstance(value, Term):
        yield from (scan.operand for scan in scans(value.plan) if isinstance(scan.operand, Bag | Change))
    elif isinstance(value, Update):
        for relation in value.relations:
            yield from (delta(value.number, relation), come(value.number, relation), gone(value.number, relation))
    elif isinstance(value, tuple):
        for item in value:
            yield from operands(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from operands(getattr(value, field.name))
