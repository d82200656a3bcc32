"""A definition for people: what EXPLAIN CREATE MATERIALIZED VIEW says of it."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.algebra.block import delta_of
from strandline.algebra.constraints import Assumed, Constraint
from strandline.algebra.representation import representation
from strandline.algebra.schema import names
from strandline.catalog import Catalog
from strandline.define.definition import Definition
from strandline.define.relations import KnownRelations
from strandline.propagate.constraints import declared_with, uses_in
from strandline.propagate.plan import REPRESENTATIONS, counted
from strandline.sources.protocol import Source


def explained(definition: Definition, catalog: Catalog, sources: Mapping[str, Source]) -> str:
    """How the view and what is hidden below it will be maintained and stored, and why so, if constraints hold."""
    constraints = _constraints(definition, catalog, sources)
    compiled, noted = definition.compiled, definition.options["stored"]
    assert isinstance(noted, dict)
    why = f"; {noted['why']}" if noted["why"] else ""
    lines = [f"{definition.name} ({', '.join(f'{c.name} {c.type}' for c in compiled.columns)})"]
    if compiled.reason is not None:
        return "\n".join([*lines, f"  full [{compiled.reason.code}] {compiled.reason.text}"])
    for block in compiled.blocks:
        base_view = definition.base_views.get(block.node)
        if base_view is not None:
            what = "base view" if "of" not in base_view else f"auxiliary view of {base_view['of']}"
            lines.append(f"  {block.node} (hidden, {what}): {base_view['why']}")
            lines.append(f"    asks for {', '.join(block.inputs)}; stores {', '.join(names(block.stored))}")
            continue
        uses = () if definition.options["policy"] == "FULL" else uses_in(block, constraints)
        assumed = Assumed(tuple(use.constraint for use in uses))
        delta = delta_of(block, block.inputs, insert_only=False, assumed=assumed)
        if delta is None:
            lines.append(f"  {block.node}: never changes")
            continue
        own = block.node == definition.name
        label = block.node if own else f"{block.node} (hidden, stored)"
        lines.append(f"  {label}: {delta.strategy}: {', '.join(delta.operators)}; {counted(len(delta.terms), 'term')}")
        lines.append(f"    reads {', '.join(block.inputs)}; stores {', '.join(names(block.stored))}")
        lines.extend(f"    constraint: {use}" for use in uses)
        lines.append(f"    as {REPRESENTATIONS[representation(block)]}{why if own else ''}")
    lines.extend(f"  note [{note.code}] {note.text}" for note in compiled.notes)
    return "\n".join(lines)


def _constraints(definition: Definition, catalog: Catalog, sources: Mapping[str, Source]) -> tuple[Constraint, ...]:
    """What is declared on the tables that the view would read."""
    relations = KnownRelations(catalog, sources)
    found = (relations.find(name) for name in definition.uses)
    return declared_with(catalog, {table.name: table.key for table in found if table is not None})
