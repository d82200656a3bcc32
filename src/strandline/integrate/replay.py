"""Replaying a trace: every event, what was sent and answered, the view after it, and the level reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline.algebra.bag import SignedBag
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import At, Operand
from strandline.errors import IntegrateError
from strandline.integrate.algorithms import create
from strandline.integrate.expectations import Difference, unequal, unequal_by_number
from strandline.integrate.levels import Verdict, check
from strandline.integrate.memory import Sent
from strandline.integrate.network import Answered, Network, Notice, Traffic
from strandline.integrate.notation import show_bag, show_sum
from strandline.integrate.trace import Event, Trace


@dataclass(frozen=True)
class Step:
    """An event and what came of it; *view* and *held* are as after it, *shown* are the states that it published."""

    event: Event
    happened: str
    waiting: tuple[int, ...]
    held: Mapping[str, SignedBag]
    view: SignedBag
    shown: tuple[SignedBag, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The step as ``--json`` shows it."""
        return {
            "event": str(self.event),
            "happened": self.happened,
            "waiting": list(self.waiting),
            "held": {name: show_bag(rows) for name, rows in self.held.items()},
            "view": show_bag(self.view),
            "published": [show_bag(rows) for rows in self.shown],
        }


@dataclass(frozen=True)
class Replayed:
    """A trace, replayed."""

    trace: Trace
    steps: tuple[Step, ...]
    verdict: Verdict
    traffic: Traffic
    differences: tuple[Difference, ...]

    def to_dict(self) -> dict[str, Any]:
        """The replay as ``--json`` shows it."""
        return {
            "id": self.trace.name,
            "algorithm": self.trace.algorithm,
            "steps": [step.to_dict() for step in self.steps],
            "holds": list(self.verdict.holds),
            "level": self.verdict.reached,
            "witnesses": dict(self.verdict.witnesses),
            "queries": self.traffic.queries,
            "answers": self.traffic.answers,
            "differences": [vars(difference) for difference in self.differences],
        }


@dataclass
class _Run:
    """A replay under way."""

    trace: Trace
    network: Network
    steps: list[Step] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)
    """Source and sequence number of each transaction."""
    arrived: list[int] = field(default_factory=list)
    """The transactions in order of arrival."""
    queries: dict[str, list[str]] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)

    def waiting(self) -> tuple[int, ...]:
        """The updates whose queries are open."""
        return tuple(dict.fromkeys(self.arrived[sent.query.update - 1] for sent in self.network.warehouse.waiting()))

    def refuse(self, event: Event, why: str) -> IntegrateError:
        place = f"event {len(self.steps) + 1}, {event}"
        return IntegrateError("BAD_TRACE", f"{self.trace.name}: {place}: {why}")


def replay(trace: Trace) -> Replayed:
    """Run *trace* through its algorithm."""
    algorithm = create(trace.algorithm, trace.view, options=trace.options)
    scripts: dict[str, list[Mapping[str, SignedBag]]] = {source: [] for source in trace.view.sources}
    run = _Run(trace, Network(algorithm, trace.relations, scripts))
    for transaction in trace.transactions:
        run.network.sites[transaction.source].script.append(transaction.deltas)
        run.places.append((transaction.source, len(run.network.sites[transaction.source].script)))
    for event in trace.events:
        if not trace.guided or event in _possible(run):
            run.steps.append(_step(run, event))
    while trace.guided and (following := _next_in_turn(run)) is not None:
        run.steps.append(_step(run, following))
    left = [str(event) for event in _possible(run)]
    if left:
        raise IntegrateError(
            "BAD_TRACE",
            f"{trace.name}: the trace ends with something still to happen ({', '.join(left)}); add events until every "
            "update has arrived and every query is answered.",
        )
    verdict = check(run.network.arrivals, run.network.warehouse.shown, show_bag)
    return Replayed(trace, tuple(run.steps), verdict, run.network.traffic, tuple(_differences(run, verdict)))


def _possible(run: _Run) -> list[Event]:
    """What can happen next; queries and answers before commits."""
    found = []
    for kind, source in run.network.actions():
        site = run.network.sites[source]
        match kind:
            case "commit":
                found.append(Event("S_up", run.places.index((source, site.committed + 1)) + 1))
            case "serve":
                found.append(Event("S_qu", run.arrived[site.queries[0].query.update - 1]))
            case _:
                found.append(_taking(run, source, site.outgoing[0]))
    return sorted(found, key=lambda event: event.kind == "S_up")


def _next_in_turn(run: _Run) -> Event | None:
    """The next event that finishes what was begun before anything else begins; None when all is quiet."""
    possible = _possible(run)
    if possible:
        return possible[0]
    return Event("W_idle", 0) if run.network.warehouse.algorithm.restless else None


def _step(run: _Run, event: Event) -> Step:
    warehouse = run.network.warehouse
    before, known = len(warehouse.shown), {id(sent) for sent in warehouse.waiting()}
    happened = _happened(run, event)
    sent = [each for each in warehouse.waiting() if id(each) not in known]
    if sent:
        happened = "; ".join(filter(None, [happened, *(_sent(run, each) for each in sent)]))
    return Step(event, happened, run.waiting(), warehouse.held(), warehouse.view, tuple(warehouse.shown[before:]))


def _happened(run: _Run, event: Event) -> str:
    match event.kind:
        case "S_up":
            return _committed(run, event)
        case "W_up":
            return _noticed(run, event)
        case "S_qu":
            return _served(run, event)
        case "W_ans":
            return _answered(run, event)
        case _:
            run.network.settle()
            return ""


def _committed(run: _Run, event: Event) -> str:
    source, sequence = run.places[event.update - 1]
    site, transaction = run.network.sites[source], run.trace.transactions[event.update - 1]
    if site.committed != sequence - 1:
        raise run.refuse(event, f"{source} commits in order, and this is its update {sequence}; reorder the events.")
    run.network.do(("commit", source))
    if any(count < 0 for relation in transaction.deltas for count in site.relations[relation].values()):
        raise run.refuse(event, f"{transaction.text} deletes what is not there.")
    changed = [f"{relation} = {show_bag(site.relations[relation])}" for relation in transaction.deltas]
    return f"{'; '.join(changed)}; V = {show_bag(_at_sources(run))}"


def _noticed(run: _Run, event: Event) -> str:
    source, sequence = run.places[event.update - 1]
    site = run.network.sites[source]
    message = site.outgoing[0] if site.outgoing else None
    if not isinstance(message, Notice) or message.sequence != sequence:
        raise run.refuse(event, f"{source} has nothing or something else to deliver next; reorder the events.")
    run.arrived.append(event.update)
    run.network.do(("notice", source))
    return ""


def _served(run: _Run, event: Event) -> str:
    for name, site in run.network.sites.items():
        if site.queries and run.arrived[site.queries[0].query.update - 1] == event.update:
            answered = run.network.do(("serve", name))
            assert isinstance(answered, Answered)
            text = _by_tag(run, {tag: show_bag(rows) for tag, rows in answered.rows.items()})
            run.answers.setdefault(str(event.update), []).append(text)
            return f"A{event.update} = {text}"
    first = [f"S_qu{run.arrived[s.queries[0].query.update - 1]}" for s in run.network.sites.values() if s.queries]
    raise run.refuse(event, f"no source has that query next; possible: {', '.join(first) or 'none'}.")


def _answered(run: _Run, event: Event) -> str:
    for name, site in run.network.sites.items():
        message = site.outgoing[0] if site.outgoing else None
        if isinstance(message, Answered) and run.arrived[message.sent.query.update - 1] == event.update:
            run.network.do(("answer", name))
            return ""
    first = [str(_taking(run, n, s.outgoing[0])) for n, s in run.network.sites.items() if s.outgoing]
    raise run.refuse(event, f"no such answer comes next; possible: {', '.join(first) or 'none'}.")


def _sent(run: _Run, sent: Sent) -> str:
    """The text of a query, which is also noted."""
    number = run.arrived[sent.query.update - 1]
    text = _by_tag(run, {part.tag: show_sum(part.terms, sent.literals.__getitem__) for part in sent.query.parts})
    run.queries.setdefault(str(number), []).append(text)
    where = f" to {sent.query.source}" if len(run.network.sites) > 1 else ""
    return f"send Q{number}{where} = {text}"


def _by_tag(run: _Run, texts: Mapping[str, str]) -> str:
    """Texts with the updates that they are tagged with; untagged, the text alone."""
    if list(texts) == [""]:
        return texts[""]
    return "{" + ", ".join(f"{run.arrived[int(tag) - 1]}: {text}" for tag, text in texts.items()) + "}"


def _taking(run: _Run, source: str, message: Notice | Answered) -> Event:
    """The event that takes *message*."""
    if isinstance(message, Notice):
        return Event("W_up", run.places.index((source, message.sequence)) + 1)
    return Event("W_ans", run.arrived[message.sent.query.update - 1])


def _at_sources(run: _Run) -> SignedBag:
    """The view on the sources as they are now."""
    relations = {name: rows for site in run.network.sites.values() for name, rows in site.relations.items()}

    def rows(operand: Operand) -> SignedBag:
        assert isinstance(operand, At)
        return relations[operand.relation]

    return evaluate(run.trace.view.plan, rows)


def _differences(run: _Run, verdict: Verdict) -> Iterator[Difference]:
    """Where the run went otherwise than the trace says."""
    expected, warehouse = run.trace.expected, run.network.warehouse
    steps = [step for step in run.steps if step.event.kind.startswith("W")]
    if expected.mv0 is not None:
        yield from unequal("mv0", [expected.mv0], [show_bag(warehouse.shown[0])])
    yield from unequal("mv", expected.mv, [show_bag(step.view) for step in steps])
    yield from unequal("collect", expected.collect, [show_bag(s.held.get("COLLECT", SignedBag())) for s in steps])
    yield from unequal("view_at_source", expected.view_at_source, [show_bag(rows) for rows in run.network.arrivals])
    yield from unequal("holds", expected.holds, verdict.holds)
    yield from unequal_by_number("queries", expected.queries, run.queries)
    yield from unequal_by_number("answers", expected.answers, run.answers)
