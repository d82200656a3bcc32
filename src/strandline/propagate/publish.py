"""What a new state shows of each view: the version that a refresh reached, or the one shown before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline.catalog import Catalog, StateEntry
from strandline.propagate.context import Context
from strandline.propagate.groups import Groups, held_back
from strandline.propagate.report import GROUP_HELD, ViewReport
from strandline.propagate.vdag import Vdag


def new_entries(context: Context, reports: Mapping[str, ViewReport]) -> list[StateEntry]:
    """The entries of the next state; a view whose group cannot move whole is told so in its report."""
    catalog, entries = context.catalog, []
    before = catalog.states.newest()
    stuck = {name: report.problem for name, report in reports.items() if report.problem is not None}
    for name, why in held_back(context.groups, stuck, reports).items():
        reports[name].problem = f"{GROUP_HELD}: {why}"
    grouped = {name for members in context.groups.values() for name in members}
    baselines = catalog.versions.baselines()
    for node in context.vdag.nodes.values():
        base = baselines.get(node.record.id)
        report = reports.get(node.name)
        kept = before.entries.get(node.name) if before else None
        problem = report.problem if report else kept.problem if kept else None
        if node.name in grouped and (problem is not None or report is None):
            if kept is not None:
                entries.append(replace(kept, problem=problem))
        elif base is not None:
            entries.append(StateEntry(node.name, node.record.id, base.version, base.positions, problem))
        elif kept is not None:
            entries.append(replace(kept, problem="its new definition is not filled yet"))
    return entries


def unpublished(catalog: Catalog, vdag: Vdag, groups: Groups) -> frozenset[str]:
    """Views that were brought up to date without being shown so, because another of their group could not be."""
    grouped = [name for members in groups.values() for name in members if name in vdag.nodes]
    newest = catalog.states.newest() if grouped else None
    found = set()
    for name in grouped:
        base = catalog.versions.baseline(vdag.nodes[name].record.id)
        entry = newest.entries.get(name) if newest else None
        if base is not None and (entry is None or (entry.view_id, entry.version) != (base.view_id, base.version)):
            found.add(name)
    return frozenset(found)
