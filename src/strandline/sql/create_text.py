"""The CREATE MATERIALIZED VIEW statement of a view that was defined otherwise than in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from strandline.errors import SqlError
from strandline.sql.names import quoted, quoted_list
from strandline.sql.schedule import Schedule


@dataclass(frozen=True)
class ViewOptions:
    """What a statement says of a view beside its query."""

    policy: str = "AUTO"
    consistency: str = "STRONG"
    comment: str | None = None
    cluster_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    with_no_data: bool = False
    schedule: str | None = None


class ViewKeywords(TypedDict, total=False):
    """The same as keywords of a function."""

    policy: str
    consistency: str
    comment: str | None
    cluster_by: str | Sequence[str]
    properties: Mapping[str, str] | None
    replace: bool
    with_no_data: bool
    schedule: str | None


def create_text(name: str, query: str, options: ViewOptions) -> str:
    """The statement; what is as it would be anyway is left out."""
    shown = name if name.isascii() and name.isidentifier() else quoted(name)
    lines = [f"CREATE {'OR REPLACE ' if options.replace else ''}MATERIALIZED VIEW {shown}"]
    if options.comment is not None:
        lines.append(f"  COMMENT {_string(options.comment)}")
    if options.cluster_by:
        lines.append(f"  CLUSTER BY ({quoted_list(options.cluster_by)})")
    if options.properties:
        pairs = ", ".join(f"{_string(key)} = {_string(value)}" for key, value in options.properties.items())
        lines.append(f"  TBLPROPERTIES ({pairs})")
    if options.policy.upper() != "AUTO":
        lines.append(f"  REFRESH POLICY {options.policy.upper()}")
    if options.consistency.upper() != "STRONG":
        lines.append(f"  CONSISTENCY {options.consistency.upper()}")
    if options.schedule is not None:
        lines.append(f"  SCHEDULE {_schedule(options.schedule)}")
    if options.with_no_data:
        lines.append("  WITH NO DATA")
    return "\n".join([*lines, "AS", query])


def _schedule(text: str) -> Schedule:
    found = Schedule.parse(text)
    if found is None:
        raise SqlError(
            "SQL_SYNTAX", f"{text!r} is no schedule; write it as `5 minutes`: a whole number, and seconds to days."
        )
    return found


def _string(text: str) -> str:
    """A string of the statement's head, which Spark never reads."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
