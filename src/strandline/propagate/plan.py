"""The plan of a refresh: a value that is printed, executed, stored, and resumed after a crash.

Inputs are pinned: each step reads positions and versions that the plan or the catalog names, so that it can be done
again and give the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from strandline.algebra.block import Method, Strategy
from strandline.algebra.codec import from_json
from strandline.algebra.shared import SharedJoin
from strandline.catalog import Json, understanding
from strandline.cost.charges import Amounts
from strandline.cost.model import Mode
from strandline.reasons import Reason
from strandline.sources.protocol import Position

SMALL_BYTES = 64 << 20
"""Steps that read less than this read and write their tables without ceremony."""


def counted(number: int, what: str) -> str:
    """A number of things, in words."""
    return f"{number} {what}" if number == 1 else f"{number:,} {what}s"


def key_of(pin: Json) -> str:
    """A position or version as a text that is equal for equal ones."""
    return json.dumps(pin, sort_keys=True)


StepKind = Literal["capture", "load", "ingest", "share", "compute", "compare", "install", "recompute", "publish"]


@dataclass(frozen=True)
class Step:
    """One step: *subject* is a source (capture), a leaf (ingest), a shared join (share), a node, or empty (publish).

    ``capture`` takes a source's changes into the change log, ``load`` reads a copied table anew; ``ingest`` stores the
    delta of a leaf, ``share`` that of a join, ``compute`` the delta of a node, ``compare`` the delta of a recomputed
    node; ``install`` and ``recompute`` make a new version of a node's table; ``publish`` makes the new state.
    """

    id: str
    kind: StepKind
    subject: str = ""
    small: bool = True
    """Whether it reads so little that its tables are read and written without ceremony."""
    after: Position = None
    upto: Position = None
    predicted: float | None = None
    """The seconds that it should take; None where nothing is known of it, as of what a source does."""
    charges: Amounts = field(default_factory=dict)
    """What *predicted* adds up from."""
    partitions: int | None = None
    """Into how many parts what it reads is shuffled, where that is many."""
    compiled: bool = False
    """Whether Spark compiles its statements; one that is not small is always compiled."""
    taken: Json = None
    """Of an ingest that was carried out before the plan was made: what came of it, and its moments since the epoch."""

    @property
    def mode(self) -> Mode:
        return "compiled" if self.compiled else "interpreted"

    @property
    def run_as(self) -> dict[str, Any]:
        """How the engine is to run it."""
        return {"small": self.small, "compiled": self.compiled, "partitions": self.partitions}


@dataclass(frozen=True)
class NodePlan:
    """How a node is brought up to date.

    *pinned* names, for each input, what the node has seen of it so far; *positions* what it will show of the leaves.
    """

    name: str
    hidden: bool
    strategy: Strategy
    reason: Reason
    baseline: int | None
    pinned: Mapping[str, Json] = field(default_factory=dict)
    positions: Mapping[str, Position] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    insert_only: bool = False
    operators: tuple[str, ...] = ()
    terms: int = 0
    estimated_rows: int | None = None
    cost: float | None = None
    cost_full: float | None = None
    blocked: bool = False
    """The node cannot be refreshed now, for *reason*, and keeps its last state."""
    representation: str = ""
    representation_reason: str = ""
    method: Method = "explicit"
    method_reason: str = ""
    """Of an aggregate: why its changes are computed by *method*."""
    order: tuple[str, ...] = ()
    """The order in which the inputs of its joins are taken to change: those that shrink most first."""
    integrated: Mapping[str, Json] | None = None
    """Of a base view: its delta, which was computed before the plan was made."""
    history: Mapping[str, Json] | None = None
    """Of a base view of which every state is kept: where the changes of single updates are, and which these are."""
    constraints: tuple[str, ...] = ()
    """Declared constraints that matter to the view, and what they give or why they are not used."""
    shares: tuple[str, ...] = ()
    """The shared joins whose deltas it is computed from."""

    @property
    def checked(self) -> tuple[str, ...]:
        """Of a node that is recomputed though its changes would do: inputs by whose changes constraints are checked."""
        return self.changed if self.strategy == "full" and self.constraints else ()


@dataclass(frozen=True)
class SharedDelta:
    """A join whose delta is computed once for all its *readers*.

    *pinned* names, for each of its relations, what all of them have seen of it.
    """

    name: str
    definition: Json
    readers: tuple[str, ...]
    pinned: Mapping[str, Json]
    changed: tuple[str, ...]
    order: tuple[str, ...] = ()

    @property
    def join(self) -> SharedJoin:
        return SharedJoin(self.name, from_json(self.definition))

    @property
    def relations(self) -> tuple[str, ...]:
        return tuple(self.pinned)


@dataclass(frozen=True)
class RefreshPlan:
    """Everything a refresh will do."""

    id: str
    base_state: int | None
    nodes: tuple[NodePlan, ...]
    steps: tuple[Step, ...]
    sql: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The SQL of each node's step, for people; the executor derives it again from the pinned inputs."""
    pending: tuple[str, ...] = field(default=(), compare=False)
    """View files that a refresh will apply first."""
    costs: str = field(default="fixed", compare=False)
    """Where the constants of the estimates come from."""
    shared: tuple[SharedDelta, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What is amiss with files, and no refresh will put right."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.steps

    @property
    def predicted(self) -> float:
        """The seconds that all steps should take one after another, as far as is known."""
        return sum(step.predicted or 0.0 for step in self.steps)

    def node(self, name: str) -> NodePlan:
        """The plan of one node."""
        return next(n for n in self.nodes if n.name == name)

    def shared_by(self, node: NodePlan) -> tuple[SharedDelta, ...]:
        """The shared joins whose deltas a node is computed from, in the order in which they were chosen."""
        return tuple(shared for shared in self.shared if shared.name in node.shares)

    def to_dict(self) -> dict[str, Any]:
        """The plan as a JSON value."""
        nodes = [{**asdict(n), "reason": n.reason.to_dict()} for n in self.nodes]
        return {
            "id": self.id,
            "base_state": self.base_state,
            "views": nodes,
            "steps": [asdict(step) for step in self.steps],
            "sql": dict(self.sql),
            "pending": list(self.pending),
            "notes": list(self.notes),
            "costs": self.costs,
            "shared": [asdict(shared) for shared in self.shared],
            "predicted": self.predicted,
        }

    @classmethod
    def from_dict(cls, found: Any) -> RefreshPlan:
        """The inverse of :meth:`to_dict`."""
        with understanding("refreshes", "the plan of the refresh that is not finished"):
            nodes = []
            for entry in found["views"]:
                reason = Reason(entry["reason"]["code"], entry["reason"]["text"])
                lists = ("changed", "operators", "order", "constraints", "shares")
                listed = {name: tuple(entry.get(name, ())) for name in lists}
                nodes.append(NodePlan(**{**entry, "reason": reason, **listed}))
            steps = tuple(Step(**step) for step in found["steps"])
            for step in steps:
                if step.kind not in get_args(StepKind):
                    raise ValueError(f"{step.kind!r} is no kind of step")
            told = (found["sql"], tuple(found["pending"]), found.get("costs", "fixed"))
            shared = tuple(_shared(entry) for entry in found.get("shared", ()))
            return cls(
                found["id"], found["base_state"], tuple(nodes), steps, *told, shared, tuple(found.get("notes", ()))
            )

    def explain(self) -> str:
        """The plan for people: a line a view with strategy, reason and estimates, then the steps and the SQL."""
        lines = [f"refresh {self.id[:8]}, on top of state {self.base_state if self.base_state is not None else '-'}"]
        for node in self.nodes:
            lines.extend(_explained(node))
        lines.extend(f"shared: {each.name}, for {', '.join(each.readers)}" for each in self.shared)
        lines.extend(f"to be applied first: {view}" for view in self.pending)
        lines.extend(f"note: {note}" for note in self.notes)
        if self.empty and not self.pending:
            lines.append("nothing to do: no input has changed")
        if self.empty:
            return "\n".join(lines)
        lines += ["", f"costs: {self.costs}", "", "steps:"]
        lines += [f"  {place + 1}. {_step(step)}" for place, step in enumerate(self.steps)]
        for name, text in self.sql.items():
            lines += ["", f"-- {name}", text]
        return "\n".join(lines)


REPRESENTATIONS = {
    "groups": "one row a group, with partial aggregates",
    "keyed": "rows with a key, updated in place",
    "dup": "rows, duplicates as rows (DUP)",
    "count": "each row once, with the number of its copies (COUNT)",
}

METHODS: Mapping[Method, str] = {
    "explicit": "explicit deletions and insertions from a summary delta",
    "summary": "the summary delta, merged into the table",
    "affected": "the groups that changed, computed anew",
}


def _shared(entry: Mapping[str, Any]) -> SharedDelta:
    listed = {name: tuple(entry[name]) for name in ("readers", "changed", "order")}
    return SharedDelta(**{**entry, **listed})


def _step(step: Step) -> str:
    name = f"{step.kind} {step.subject}".rstrip()
    if step.predicted is None:
        return name
    return f"{name}: {step.predicted:.2f} s, {step.mode}"


def _explained(node: NodePlan) -> list[str]:
    label = f"{node.name} (hidden)" if node.hidden else node.name
    strategy = "keeps its last state" if node.blocked else node.strategy
    lines = [f"{label}: {strategy} [{node.reason.code}] {node.reason.text}"]
    if node.operators:
        lines.append(f"    operators: {', '.join(node.operators)}; {counted(node.terms, 'term')}")
    if node.representation:
        why = f"; {node.representation_reason}" if node.representation_reason else ""
        lines.append(f"    stored as: {REPRESENTATIONS[node.representation]}{why}")
    if node.method_reason:
        lines.append(f"    method: {METHODS[node.method]}; {node.method_reason}")
    lines.extend(f"    constraint: {line}" for line in node.constraints)
    if node.order:
        lines.append(f"    order of inputs: {', '.join(node.order)}")
    lines.extend(f"    shares the delta of: {name}" for name in node.shares)
    for relation in node.changed:
        lines.append(f"    changed: {relation}, seen up to {_short(node.pinned.get(relation))}")
    if node.cost is not None and node.cost_full is not None:
        known = node.estimated_rows is not None
        rows = counted(node.estimated_rows or 0, "changed row") if known else "unknown changed rows"
        lines.append(f"    estimated: {rows}; cost {node.cost:.2f}, recomputing {node.cost_full:.2f}")
    return lines


def _short(position: Json) -> str:
    if isinstance(position, dict) and "version" in position:
        return f"version {position['version']}"
    if isinstance(position, dict) and "dump" in position:
        return f"dump {position['dump']}"
    if isinstance(position, dict) and "place" in position:
        return f"place {position['place']} of its log"
    return f"position {position}"
