"""The columns that two snapshots are compared by: those that both have, in the wider of their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from strandline.differential.snapshot import Snapshot
from strandline.errors import DifferentialError
from strandline.sql.names import choices


@dataclass(frozen=True)
class Columns:
    """What is compared (*schema*, with the *key* or the identification attributes), and how the snapshots differ.

    *retyped* has each column that has another type now, with the old and the new one.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    retyped: tuple[tuple[str, str, str], ...] = ()

    @property
    def rest(self) -> tuple[str, ...]:
        """The columns besides the key."""
        return tuple(name for name in self.schema.names if name not in self.key)

    def to_dict(self) -> dict[str, object]:
        """The differences of the schemas, as the ``--json`` output shows them."""
        retyped = [{"column": name, "old": old, "new": new} for name, old, new in self.retyped]
        return {"added": list(self.added), "dropped": list(self.dropped), "retyped": retyped}


def agreed(old: Snapshot, new: Snapshot, key: Sequence[str] | None) -> Columns:
    """The columns of both; *key* None makes all of them identification attributes, as for a bag without any."""
    old_schema, new_schema = old.schema or new.schema, new.schema or old.schema
    if old_schema is None or new_schema is None:
        raise DifferentialError(
            "SNAPSHOT_EMPTY",
            f"neither {old.name} nor {new.name} has columns; a CSV file has a header, a JSON file an object a line; "
            "name other files.",
        )
    for name in key or ():
        for side, schema in ((old, old_schema), (new, new_schema)):
            if name not in schema.names:
                raise DifferentialError(
                    "KEY_MISSING",
                    f"{side.name} has no column {name}; its columns are {choices(schema.names, name)}; name key "
                    "columns that both snapshots have.",
                )
    both = [name for name in new_schema.names if name in old_schema.names]
    if not both:
        raise DifferentialError(
            "NO_COMMON_COLUMN",
            f"{old.name} and {new.name} have no column in common; the first has {choices(old_schema.names)}, the "
            f"second {choices(new_schema.names)}; are these snapshots of one table?",
        )
    kinds = {name: (old_schema.field(name).type, new_schema.field(name).type) for name in both}
    schema = pa.schema([(name, _common(name, kinds[name], old, new)) for name in both])
    return Columns(
        schema,
        tuple(key) if key is not None else tuple(both),
        tuple(name for name in new_schema.names if name not in both),
        tuple(name for name in old_schema.names if name not in both),
        tuple((name, str(a), str(b)) for name, (a, b) in kinds.items() if a != b and not old.text and not new.text),
    )


def _common(name: str, kinds: tuple[pa.DataType, pa.DataType], old: Snapshot, new: Snapshot) -> pa.DataType:
    """A type that holds the values of both; text takes on the type of the other side."""
    before, after = kinds
    if before == after:
        return before
    if old.text or new.text:
        return before if new.text else after
    try:
        return (
            pa.unify_schemas([pa.schema([(name, before)]), pa.schema([(name, after)])], promote_options="permissive")
            .field(0)
            .type
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise DifferentialError(
            "TYPES_DIFFER",
            f"column {name} is {before} in {old.name} and {after} in {new.name}, and values of these types cannot be "
            "compared; convert one of the snapshots, or leave the column out of it.",
        ) from None
