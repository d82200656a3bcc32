"""What the catalog notes of definitions: of views, the copies that they read, and the blocks below them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint, to_json
from strandline.algebra.schema import Schema
from strandline.catalog import AddView, Json, RedefineView
from strandline.define.definition import Definition
from strandline.reasons import Reason
from strandline.store.layout import new_location

LAYOUT = 1
"""Version of the way nodes are stored; noted with each definition."""

_Change = TypeVar("_Change", AddView, RedefineView)


def added(definition: Definition) -> AddView:
    """A new view; as a change of one that is there it is a redefinition."""
    compiled = definition.compiled
    return AddView(
        name=definition.name,
        kind="view",
        sql=definition.sql,
        options=definition.options,
        definition={
            **_noted(compiled.blocks[-1] if compiled.blocks else None, compiled.reason),
            "loose": list(compiled.loose),
            "notes": [{"code": note.code, "text": note.text} for note in compiled.notes],
        },
        fingerprint=definition.fingerprint,
        columns=compiled.columns,
        inputs=definition.inputs,
        location=new_location(definition.name, "view"),
        origin=definition.origin,
    )


def added_copy(change: type[_Change], leaf: str, columns: Schema, key: Sequence[str]) -> _Change:
    """A copy of some columns of a source table, which is new or begins anew."""
    text = json.dumps([leaf, [to_json(c) for c in columns], list(key)])
    return change(
        name=leaf,
        kind="copy",
        sql="",
        options={"policy": "AUTO", "key": list(key)},
        definition=_noted(None, None),
        fingerprint=hashlib.sha256(text.encode()).hexdigest()[:16],
        columns=columns,
        inputs=(),
        location=new_location(leaf, "copy"),
        origin=None,
    )


def added_block(block: Block, base_view: Mapping[str, Json] | None) -> AddView:
    """A hidden block, or, with what is noted of it, a base view; that comes after the auxiliary views it keeps."""
    kept = (base_view or {}).get("auxiliary", {})
    assert isinstance(kept, dict)
    return AddView(
        name=block.node,
        kind="block" if base_view is None else "base",
        sql="",
        options={"policy": "AUTO"} if base_view is None else base_view,
        definition=_noted(block, None),
        fingerprint=fingerprint(block),
        columns=block.visible,
        inputs=(*block.inputs, *(str(name) for name in kept.values())),
        location=new_location(block.node, "block"),
        origin=None,
    )


def _noted(block: Block | None, reason: Reason | None) -> dict[str, Json]:
    return {
        "layout": LAYOUT,
        "block": None if block is None else to_json(block),
        "reason": None if reason is None else {"code": reason.code, "text": reason.text},
    }
