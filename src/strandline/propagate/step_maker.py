"""The steps that carry a plan out, each with what it should take: leaves first, then each node after its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline.catalog import Catalog, Json
from strandline.cost import charges
from strandline.cost.calibration import Prices
from strandline.cost.charges import Charges, Extent, Install, Work
from strandline.ingest.copied import CopiedSource
from strandline.propagate.groups import Groups
from strandline.propagate.inputs import UNKNOWN_ROWS, Inputs
from strandline.propagate.plan import SMALL_BYTES, NodePlan, Step, StepKind, key_of
from strandline.propagate.pricing import Reading, computing, installing, priced, shuffled
from strandline.propagate.publish import unpublished
from strandline.propagate.sharing import Sharing, sharing_charges
from strandline.propagate.vdag import Vdag
from strandline.sources.protocol import Position, Source
from strandline.store.install import is_tiny
from strandline.store.node import Node


class StepMaker:
    """Makes the steps of one plan; *readings* is what applying changes takes, by node."""

    def __init__(
        self,
        catalog: Catalog,
        vdag: Vdag,
        sources: Mapping[str, Source],
        prices: Prices,
        inputs: Inputs,
        readings: Mapping[str, Reading],
    ) -> None:
        self._catalog = catalog
        self._vdag = vdag
        self._sources = sources
        self._prices = prices
        self._inputs = inputs
        self._readings = readings

    def steps(self, planned: Mapping[str, NodePlan], sharing: Sharing, groups: Groups, *, captures: bool) -> list[Step]:
        """Leaves first, then each node after its inputs, then the new state."""
        steps = self._capture(planned) if captures else []
        steps.extend(self.ingests(planned))
        compared = self._compared(planned)
        to_share = dict(sharing.works)
        for plan in planned.values():
            steps.extend(self._share(name, to_share.pop(name)) for name in plan.shares if name in to_share)
            node = self._vdag.nodes[plan.name]
            copied = node.copied or node.base
            if plan.strategy in ("incremental", "affected") or (copied and plan.changed):
                steps.extend(self._change(node, plan))
            elif plan.strategy == "full" and not copied:
                steps.append(self._recompute(node))
            for version in compared.get(plan.name, ()):
                steps.append(self._compare(node, plan, version))
        held = unpublished(self._catalog, self._vdag, groups)
        shown_late = any(plan.name in held and not plan.blocked for plan in planned.values())
        return [*steps, Step("", "publish")] if steps or shown_late else []

    def _step(
        self,
        kind: StepKind,
        subject: str,
        charged: Charges | None,
        bytes: int,
        after: Position = None,
        upto: Position = None,
    ) -> Step:
        return priced(Step("", kind, subject, True, after, upto), charged, bytes, self._prices, SMALL_BYTES)

    def _capture(self, planned: Mapping[str, NodePlan]) -> list[Step]:
        upto = {
            plan.name.split(".", 1)[0]: plan.positions[plan.name]
            for plan in planned.values()
            if plan.changed and isinstance(self._sources.get(plan.name.split(".", 1)[0]), CopiedSource)
        }
        return [Step("", "capture", source, upto=position) for source, position in upto.items()]

    def ingests(self, planned: Mapping[str, NodePlan]) -> list[Step]:
        """A delta of a leaf is taken in once for all nodes that have seen the same of it."""
        intervals: dict[tuple[str, str], Step] = {}
        for plan in planned.values():
            if plan.strategy in ("incremental", "affected") and not self._vdag.nodes[plan.name].base:
                for name in plan.changed:
                    if name in self._inputs.leaves:
                        after = plan.pinned[name]
                        intervals.setdefault((name, key_of(after)), self.ingest(name, after))
        return list(intervals.values())

    def ingest(self, name: str, after: Position) -> Step:
        """The step that takes in the changes of a leaf."""
        peek, leaf = self._inputs.peek(name, after), self._inputs.leaves[name]
        rows = UNKNOWN_ROWS if peek.rows is None else peek.rows
        # What was rewritten is read as it was and as it is, unless there is a change feed.
        share = 0.0 if peek.insert_only else min(peek.bytes / max(leaf.size.bytes, 1), 1.0)
        rewritten = Extent(int(share * (leaf.size.rows or 0)), 0 if peek.insert_only else peek.bytes, len(peek.files))
        width = leaf.size.bytes / max(leaf.size.rows or 0, 1)
        charged = charges.ingested(rows, rewritten, int(rows * width))
        step = self._step("ingest", name, charged, 2 * peek.bytes, after=after, upto=leaf.position)
        return self._inputs.taken.into(step)

    def _share(self, name: str, work: Reading) -> Step:
        return self._step("share", name, sharing_charges(work.work), work.work.looked_up.bytes)

    def _change(self, node: Node, plan: NodePlan) -> list[Step]:
        """The delta of a node, and its install."""
        size = self._inputs.size(node.name)
        reading = self._readings.get(node.name)
        computed: Charges | None
        if reading is not None:
            computed, read = computing(reading, plan.method), reading.bytes(plan.method)
        else:
            rows = plan.estimated_rows or 0
            install: Install = (
                "append" if plan.insert_only else "overwrite" if is_tiny(size.rows or 0, size.bytes) else "merge"
            )
            table = self._inputs.extent(node.name, len(node.stored))
            reading = Reading(Work(rows, 1, Extent(), table, install=install))
            # A delta that a source's answers or a dump give is not computed here.
            known = node.copied and isinstance(self._sources.get(node.name.split(".", 1)[0]), CopiedSource)
            computed, read = charges.ingested(rows) if known else None, size.bytes
        return [
            self._step("compute", node.name, computed, read),
            self._step("install", node.name, installing(reading, plan.method), reading.installed_bytes),
        ]

    def _recompute(self, node: Node) -> Step:
        inputs = [self._inputs.extent(name, len(node.uses(name))) for name in node.inputs]
        table = self._inputs.extent(node.name, len(node.stored))
        partials = len(node.block.partials) if node.block is not None else 0
        moved = shuffled(inputs, table, grouped=partials > 0)
        work = Work(0, 0, sum(inputs, Extent()), table, shuffled_bytes=moved, partials=partials)
        read = sum(self._inputs.size(name).bytes for name in node.inputs)
        return self._step("recompute", node.name, charges.recomputed(work), read)

    def _compare(self, node: Node, plan: NodePlan, version: Json) -> Step:
        table = self._inputs.extent(node.name, len(node.stored))
        charged = charges.compared(table, delta_rows_of(plan, table.rows))
        return self._step("compare", plan.name, charged, 2 * table.bytes, after=version)

    def _compared(self, planned: Mapping[str, NodePlan]) -> dict[str, list[Json]]:
        """Nodes whose delta must be had by comparing versions, with the versions to compare from.

        That is so for a recomputed node, and for one that was refreshed earlier without a node above it.
        """
        found: dict[str, list[Json]] = {}
        for plan in planned.values():
            node = self._vdag.nodes[plan.name]
            if plan.strategy not in ("incremental", "affected") or node.copied or node.base:
                continue
            for name in plan.changed:
                below = planned.get(name)
                if below is None:
                    continue
                seen = self._vdag.nodes[name].pinned_version(plan.pinned[name])
                computed = below.strategy in ("incremental", "affected") and below.baseline == seen
                if not computed and plan.pinned[name] not in found.setdefault(name, []):
                    found[name].append(plan.pinned[name])
        return found


def delta_rows_of(plan: NodePlan, table_rows: int) -> int:
    """The rows of the delta of a node, as far as can be told; all of a table may change if it is recomputed."""
    if plan.strategy == "full" and (plan.reason.code != "COST" or plan.estimated_rows is None):
        return table_rows
    return min(plan.estimated_rows or 0, 2 * max(table_rows, 1))


def numbered(steps: list[Step], plan_id: str) -> tuple[Step, ...]:
    """*steps* with names that no other plan has."""
    return tuple(replace(step, id=f"{plan_id[:12]}-{place + 1:03d}") for place, step in enumerate(steps))
