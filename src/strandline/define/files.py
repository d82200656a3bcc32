"""View files against the catalog: files say what is wanted, the catalog what is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from strandline.catalog import Catalog, ViewRecord
from strandline.errors import Origin, SqlError
from strandline.project.folder import Project
from strandline.propagate.vdag import sorted_by_inputs
from strandline.sql import ddl
from strandline.sql.names import choices
from strandline.sql.spans import tokenize
from strandline.sql.statements import CreateView


@dataclass(frozen=True)
class PendingView:
    """A view whose file is not applied yet."""

    change: Literal["new", "changed", "rescheduled"]
    create: CreateView

    def __str__(self) -> str:
        return f"{self.create.name}: {_CHANGES[self.change]} ({self.create.origin.file})"


_CHANGES = {"new": "new", "changed": "definition changed: rebuild", "rescheduled": "schedule changed"}


def declared_views(project: Project) -> dict[str, CreateView]:
    """What views/*.sql declare, each after the views it reads."""
    found: dict[str, CreateView] = {}
    for file in project.views():
        statement = ddl.parse(file.text, file.shown)
        if not isinstance(statement, CreateView):
            raise SqlError(
                "NOT_A_VIEW", "a file in views/ holds one CREATE MATERIALIZED VIEW.", origin=Origin(file.shown)
            )
        other = next((c for n, c in found.items() if n.lower() == statement.name.lower()), None)
        if other is not None:
            raise SqlError(
                "DUPLICATE_VIEW",
                f"view {statement.name} is defined in {other.origin.file} as well; keep one of the two files.",
                origin=statement.origin,
            )
        found[statement.name] = statement
    inputs = {name: _named(create, found) for name, create in found.items()}
    return {name: found[name] for name in sorted_by_inputs(inputs)}


def _named(create: CreateView, known: dict[str, CreateView]) -> list[str]:
    words = {table.name.lower() for table in create.query.tree.find_all(exp.Table) if not table.db}
    return [name for name in known if name.lower() in words]


def pending_views(project: Project, catalog: Catalog) -> list[PendingView]:
    """The view files that are new, or say something else than what is applied."""
    pending = []
    records = {record.name.lower(): record for record in catalog.views.all()}
    for create in declared_views(project).values():
        record = records.get(create.name.lower())
        if record is None:
            pending.append(PendingView("new", create))
        elif not same_definition(record, create):
            pending.append(PendingView("rescheduled" if same_but_schedule(record, create) else "changed", create))
    return pending


def same_definition(record: ViewRecord, create: CreateView) -> bool:
    """Whether a view's record and a statement say the same, but for white space and comments."""
    schedule = None if create.schedule is None else str(create.schedule)
    return same_but_schedule(record, create) and record.options.get("schedule") == schedule


def same_but_schedule(record: ViewRecord, create: CreateView) -> bool:
    """The same, whatever either says of a schedule: the view computes and stores what it did."""
    options = record.options
    return (
        (record.sql == create.query.sql or _normal(record.sql) == _normal(create.query.sql))
        and options.get("policy") == create.policy
        and options.get("consistency") == create.consistency
        and options.get("comment") == create.comment
        and options.get("cluster_by") == list(create.cluster_by)
        and options.get("properties") == dict(create.properties)
    )


def _normal(sql: str) -> list[tuple[str, str]]:
    return [(token.token_type.name, token.text) for token in tokenize(sql, "<sql>")]


def notes(project: Project, catalog: Catalog) -> tuple[str, ...]:
    """What is amiss with the files of a project, and no refresh will put right."""
    applied = {record.name.lower(): record.name for record in catalog.views.all() if record.kind == "view"}
    declared = {name.lower(): name for name in declared_views(project)}
    gone = [
        f"{name}: its file is gone; DROP the view, or put the file back"
        for key, name in applied.items()
        if key not in declared
    ]
    known = {**declared, **applied}
    strangers = [
        f"group {group} names {name}, and there is no such view; there are: {choices(known.values(), name)}"
        for group, members in project.config.groups.items()
        for name in members
        if name.lower() not in known
    ]
    return (*gone, *strangers)
