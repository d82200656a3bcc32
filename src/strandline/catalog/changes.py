"""Changes to views, to be carried out together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypeAlias, TypedDict

from strandline.algebra.schema import Column
from strandline.catalog.jsontext import Json
from strandline.catalog.records import ViewKind


class ViewValues(TypedDict):
    """What a view is registered with, besides its name."""

    kind: ViewKind
    sql: str
    options: Mapping[str, Json]
    definition: Json
    fingerprint: str
    columns: Sequence[Column]
    inputs: Sequence[str]
    location: str
    origin: NotRequired[str | None]


class ViewChanges(TypedDict, total=False):
    """What of a view can be replaced."""

    kind: ViewKind
    sql: str
    options: Mapping[str, Json]
    definition: Json
    fingerprint: str
    columns: Sequence[Column]
    inputs: Sequence[str]
    location: str
    origin: str | None


@dataclass(frozen=True)
class _Registration:
    name: str
    kind: ViewKind = field(kw_only=True)
    sql: str = field(kw_only=True)
    options: Mapping[str, Json] = field(kw_only=True)
    definition: Json = field(kw_only=True)
    fingerprint: str = field(kw_only=True)
    columns: Sequence[Column] = field(kw_only=True)
    inputs: Sequence[str] = field(kw_only=True)
    location: str = field(kw_only=True)
    origin: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class AddView(_Registration):
    """Register a new view; ``VIEW_EXISTS`` if the name is taken."""


@dataclass(frozen=True)
class RedefineView(_Registration):
    """Drop the view and register another in its place, which has a new id and the same spelling of the name."""


@dataclass(frozen=True)
class ReplaceView:
    """Give the view other values without altering what it computes; its id and the rest stay."""

    name: str
    changes: ViewChanges


@dataclass(frozen=True)
class DropView:
    """Drop the view; what it was can still be read by its id."""

    name: str


ViewChange: TypeAlias = AddView | RedefineView | ReplaceView | DropView
