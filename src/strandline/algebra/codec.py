"""Plans and blocks as JSON values, for the catalog, and the fingerprint of a block."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from strandline.algebra import plan as _plan
from strandline.algebra import scalar as _scalar
from strandline.algebra.block import Block
from strandline.algebra.ordered import Ordered
from strandline.algebra.schema import Column
from strandline.algebra.term import Term

_CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        Column,
        Block,
        Ordered,
        Term,
        _scalar.Col,
        _scalar.Lit,
        _scalar.Call,
        _scalar.Text,
        _plan.At,
        _plan.Change,
        _plan.Backing,
        _plan.Bag,
        _plan.Output,
        _plan.Partial,
        _plan.Scan,
        _plan.Values,
        _plan.Filter,
        _plan.Project,
        _plan.Join,
        _plan.UnionAll,
        _plan.Negate,
        _plan.Net,
        _plan.GroupBy,
        _plan.MergeSummary,
        _plan.SemiJoin,
        _plan.Exists,
        _plan.OuterJoin,
        _plan.Window,
        _plan.Repeat,
        _plan.Generate,
        _plan.Limit,
    )
}


def to_json(value: Any) -> Any:
    """*value* as a JSON value: a dataclass becomes an object with its class name under ``is``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"is": type(value).__name__, **fields}
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, Decimal):
        return {"is": "Decimal", "value": str(value)}
    return value


def from_json(value: Any, also: Mapping[str, type[Any]] | None = None) -> Any:
    """The inverse of :func:`to_json`; *also* names dataclasses beside those of the algebra."""
    classes = {**_CLASSES, **also} if also else _CLASSES

    def decoded(found: Any) -> Any:
        if isinstance(found, list):
            return tuple(decoded(item) for item in found)
        if isinstance(found, dict):
            if found["is"] == "Decimal":
                return Decimal(found["value"])
            return classes[found["is"]](**{name: decoded(item) for name, item in found.items() if name != "is"})
        return found

    return decoded(value)


def fingerprint(block: Block) -> str:
    """A name for what a block computes, whatever node it is."""
    text = json.dumps(to_json(dataclasses.replace(block, node="")), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
