"""Views as the literature writes them: relations that join by equal attribute names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from strandline.algebra.plan import At, Output, Scan
from strandline.algebra.scalar import Call, Col, Lit, Scalar, equality
from strandline.algebra.schema import Column
from strandline.integrate.view import View, column_of

Attributes = str | list[str]
"""Names of attributes; a text has one for each of its letters."""
Clause = tuple[str, str, str | int | float]
"""A condition: an attribute, a comparison, and an attribute or a value."""


def natural_join(
    relations: Mapping[str, Attributes],
    joined: Sequence[tuple[str, Attributes]],
    project: Attributes,
    where: Sequence[Clause],
    keys: Mapping[str, Attributes],
    sources: Mapping[str, str],
) -> View:
    """``pi_project(sigma_where(r1 >< r2 ...))``; *joined* gives attributes, perhaps other ones, to each occurrence.

    A ValueError says what does not fit together.
    """
    fields = {name: tuple(attributes) for name, attributes in relations.items()}
    for name, own in fields.items():
        if len(set(own)) < len(own):
            raise ValueError(f"rels.{name} names an attribute twice; give each its own name")
    known("join", [name for name, _ in joined], fields)
    known("keys", keys, fields)
    known("sources", sources, fields)
    scans, conditions = list[Scan](), list[Scalar]()
    first, last = dict[str, str](), dict[str, str]()
    for place, (name, attributes) in enumerate(joined):
        if len(attributes) != len(fields[name]):
            raise ValueError(f"join names {len(attributes)} attributes of {name}, which has {len(fields[name])}")
        again = any(scan.operand == At(name) for scan in scans)
        known(f"keys.{name}", keys.get(name, ()), fields[name])
        columns = tuple(Column(field, "bigint") for field in fields[name])
        scan = Scan(At(name), f"{name}_{place + 1}" if again else name, columns, tuple(keys.get(name, ())))
        for attribute, field in zip(attributes, fields[name], strict=True):
            column = column_of(scan, field)
            if attribute in last:
                conditions.append(equality(last[attribute], column))
            first.setdefault(attribute, column)
            last[attribute] = column
        scans.append(scan)
    known("project", project, first)
    outputs = tuple(Output(Column(attribute, "bigint"), Col(first[attribute])) for attribute in project)
    conditions += [_condition(clause, first) for clause in where]
    homes = tuple(sources.get(name, "source") for name, _ in joined)
    return View(tuple(scans), tuple(conditions), outputs, homes)


def known(where: str, named: Iterable[str], there: Iterable[str]) -> None:
    """Refuse names that do not exist."""
    missing = [name for name in named if name not in there]
    if missing:
        raise ValueError(f"{where} names {', '.join(missing)}; there are {', '.join(sorted(there))}")


def _condition(clause: Clause, columns: Mapping[str, str]) -> Scalar:
    left, operator, right = clause
    known("where", [left], columns)
    other = Col(columns[right]) if isinstance(right, str) and right in columns else Lit(right)
    return Call(operator, (Col(columns[left]), other))
