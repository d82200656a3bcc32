"""Which steps of a plan must have ended before which; steps that do not wait for each other may run at the same time.

On a store that keeps versions a step reads pinned ones, so installs need not sit between computes: a step waits for
what it reads, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from strandline.catalog import Json
from strandline.propagate.plan import RefreshPlan, Step, key_of
from strandline.propagate.vdag import Vdag


def prerequisites(plan: RefreshPlan, vdag: Vdag) -> Mapping[str, frozenset[str]]:
    """For each step, by its id, the steps that must have ended before it; they come before it in the plan too."""
    known = _Known(plan, vdag)
    return {step.id: frozenset(earlier.id for earlier in known.before(step)) for step in plan.steps}


class _Known:
    """The steps of a plan by what they make."""

    def __init__(self, plan: RefreshPlan, vdag: Vdag) -> None:
        self._plan = plan
        self._vdag = vdag
        self._made = {s.subject: s for s in plan.steps if s.kind in ("install", "recompute")}
        self._computed = {s.subject: s for s in plan.steps if s.kind == "compute"}
        self._captured = {s.subject: s for s in plan.steps if s.kind == "capture"}
        self._shared = {s.subject: s for s in plan.steps if s.kind == "share"}
        self._deltas = {(s.subject, key_of(s.after)): s for s in plan.steps if s.kind in ("ingest", "compare")}
        self._previous = self._in_turn()

    def before(self, step: Step) -> Iterator[Step]:
        """What *step* waits for."""
        if step.kind == "publish":
            yield from (other for other in self._plan.steps if other is not step)
            return
        if step.id in self._previous:
            yield self._previous[step.id]
        match step.kind:
            case "share":
                shared = next(each for each in self._plan.shared if each.name == step.subject)
                yield from (self._made[name] for name in shared.relations if name in self._made)
                yield from self._deltas_of(shared.changed, shared.pinned)
            case "compute":
                yield from self._read(step.subject)
            case "recompute":
                yield from self._inputs(step.subject)
                plan = self._plan.node(step.subject)
                yield from self._deltas_of(plan.checked, plan.pinned)
            case "install":
                yield self._computed[step.subject]
            case "compare" if step.subject in self._made:
                yield self._made[step.subject]

    def _read(self, name: str) -> Iterator[Step]:
        """A delta is computed from those of the inputs, and from the inputs before and after."""
        node = self._vdag.nodes[name]
        if node.copied or node.base:
            source = name.split(".", 1)[0]
            yield from (self._captured[source],) if source in self._captured else ()
            return
        yield from self._inputs(name)
        plan = self._plan.node(name)
        yield from self._deltas_of(plan.changed, plan.pinned)
        yield from (self._shared[shared] for shared in plan.shares)

    def _deltas_of(self, changed: Iterable[str], pinned: Mapping[str, Json]) -> Iterator[Step]:
        """The steps that store deltas of relations from where they were seen."""
        found = (self._deltas.get((name, key_of(pinned[name]))) for name in changed)
        yield from (step for step in found if step is not None)

    def _inputs(self, name: str) -> Iterator[Step]:
        yield from (self._made[i] for i in self._vdag.nodes[name].inputs if i in self._made)

    def _in_turn(self) -> dict[str, Step]:
        """Steps that ask the same source do so one after another: a connection is no place for two."""
        found: dict[str, Step] = {}
        last: dict[str, Step] = {}
        for step in self._plan.steps:
            speaks_to = self._speaks_to(step)
            if speaks_to is not None:
                if speaks_to in last:
                    found[step.id] = last[speaks_to]
                last[speaks_to] = step
        return found

    def _speaks_to(self, step: Step) -> str | None:
        if step.kind == "capture":
            return step.subject
        if step.kind != "load":
            return None
        # All base views are filled in the same snapshots.
        return "" if self._vdag.nodes[step.subject].base else step.subject.split(".", 1)[0]
