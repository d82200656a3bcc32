"""The table references of a query, and the query with them replaced.

A full refresh, ``verify`` and ``SELECT`` run what the user wrote; only the names of tables give way to pinned
versions of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from strandline.errors import SqlError
from strandline.sql.names import choices, quoted
from strandline.sql.relations import Relation, Relations
from strandline.sql.spans import Span, error_at
from strandline.sql.statements import Query


@dataclass(frozen=True)
class Reference:
    """A table name in a query."""

    relation: Relation
    name_span: Span
    parts: tuple[str, ...]
    aliased: bool
    end: int
    """Where an alias would stand: behind the name, or behind what is said of a sample."""


def references(query: Query, relations: Relations) -> tuple[Reference, ...]:
    """The tables that *query* names, resolved; names of CTEs are not among them."""
    found = []
    for table in query.tree.find_all(exp.Table):
        if "name_span" not in table.meta or _is_cte(table):
            continue
        parts = () if isinstance(table.this, exp.Func) else tuple(part.name for part in table.parts)
        relation = relations.find(".".join(parts))
        if relation is None:
            raise unknown_table(query, table.meta["name_span"], parts, relations)
        where = table.meta["span"] if table.args.get("sample") and "span" in table.meta else table.meta["name_span"]
        found.append(Reference(relation, table.meta["name_span"], parts, bool(table.alias), where[1]))
    return tuple(sorted(found, key=lambda reference: reference.name_span))


def _is_cte(table: exp.Table) -> bool:
    """Whether a table name means a CTE: inside a CTE those before it are known, and itself only if it is recursive."""
    if table.db:
        return False
    node: exp.Expr | None = table
    inside: exp.Expr | None = None
    while node is not None:
        if isinstance(node, exp.CTE):
            inside = node
        with_ = node.args.get("with_")
        if with_ is not None:
            known = list(with_.expressions)
            if any(cte is inside for cte in known) and not with_.args.get("recursive"):
                known = known[: next(place for place, cte in enumerate(known) if cte is inside)]
            if any(cte.alias.lower() == table.name.lower() for cte in known):
                return True
        node = node.parent
    return False


def unknown_table(query: Query, where: Span, parts: tuple[str, ...], relations: Relations) -> Exception:
    """The error for a table name that stands for nothing."""
    name = ".".join(parts)
    if not parts or any(not part for part in parts):
        return error_at(
            "TABLE_FUNCTION",
            "table functions cannot be read by a view; name a table or a view.",
            query.text,
            where,
            query.file,
        )
    return error_at("UNKNOWN_TABLE", _no_such(name, relations), query.text, where, query.file)


def unknown_relation(name: str, relations: Relations) -> SqlError:
    """The error for a name outside of any query."""
    return SqlError("UNKNOWN_TABLE", _no_such(name, relations))


def _no_such(name: str, relations: Relations) -> str:
    what = "table" if "." in name else "view"
    return (
        f"there is no {what} {name}; there are: {choices(relations.names(), name)}. "
        "Name a table as source.table or a view by its name; add a missing source with add_source or in sources/."
    )


def replaced(query: Query, relations: Relations, by: Callable[[Relation], str]) -> str:
    """*query* as written, with each table name replaced by the relation expression that *by* gives."""
    edits: list[tuple[Span, str]] = []
    qualifiers: dict[str, str] = {}
    for reference in references(query, relations):
        expression = by(reference.relation)
        edits.append((reference.name_span, expression))
        if not reference.aliased:
            edits.append(((reference.end, reference.end), f" AS {quoted(reference.parts[-1])}"))
            if len(reference.parts) > 1:
                qualifiers[".".join(reference.parts).lower()] = reference.parts[-1]
    edits.extend(_shortened(query, qualifiers))
    text, last = "", query.start
    for (start, end), new in sorted(edits):
        text += query.text[last:start] + new
        last = end
    return (text + query.text[last:]).rstrip().rstrip(";").rstrip()


def _shortened(query: Query, qualifiers: Mapping[str, str]) -> list[tuple[Span, str]]:
    """Columns written ``source.table.column``: a replaced table answers to its last name only."""
    edits = []
    for column in query.tree.find_all(exp.Column):
        parts = column.parts
        if len(parts) >= 3:
            short = qualifiers.get(f"{parts[0].name}.{parts[1].name}".lower())
            if short is not None:
                edits.append(((parts[0].meta["start"], parts[1].meta["end"] + 1), quoted(short)))
    return edits
