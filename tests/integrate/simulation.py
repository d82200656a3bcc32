"""One random case through one algorithm, and what the checker says of it."""

from __future__ import annotations

from random import Random
from typing import Any

from strandline.integrate.algorithm import Algorithm
from strandline.integrate.algorithms import Options, create
from strandline.integrate.levels import Verdict, check
from strandline.integrate.messages import Answer, Messages, Update
from strandline.integrate.network import Network
from strandline.integrate.notation import show_bag
from strandline.integrate.schedules import run_at_random
from strandline.integrate.state import dump, load
from tests.integrate.random_cases import Case, random_case

ONE_SOURCE = ("basic", "rv", "eca", "eca-key", "eca-key-as-printed", "eca-local", "lca")
KEYED = ("eca-key", "eca-key-as-printed", "strobe", "c-strobe")
KEYS_HELP = ("eca-local", "keyed-groups")
PROMISING = (
    "rv", "sc", "eca", "eca-key", "eca-local", "lca", "strobe", "c-strobe", "sweep", "grouped", "grouped-by-frequency",
    "parallel-groups", "keyed-groups",
)  # fmt: skip


class Forgetful(Algorithm[Any]):
    """An algorithm that is stopped before each event, and goes on from the text of its state."""

    name = "forgetful"
    promises = None

    def __init__(self, inner: Algorithm[Any]) -> None:
        self.inner = inner
        super().__init__(inner.view, inner.state)

    def start(self) -> Any:
        return self.inner.start()

    def kept(self) -> Any:
        return self.inner.kept()

    def held(self) -> Any:
        return self.inner.held()

    @property
    def restless(self) -> bool:
        return self.inner.restless

    def on_update(self, update: Update) -> Messages:
        return self._through_text(lambda: self.inner.on_update(update))

    def on_answer(self, answer: Answer) -> Messages:
        return self._through_text(lambda: self.inner.on_answer(answer))

    def on_idle(self) -> Messages:
        return self._through_text(self.inner.on_idle)

    def _through_text(self, handled: Any) -> Messages:
        before = self.inner.state
        self.inner.state = load(dump(before))
        assert self.inner.state == before
        messages: Messages = handled()
        self.state = self.inner.state
        return messages


def case_for(name: str, random: Random) -> Case:
    """A case that the algorithm can maintain."""
    keyed = name in KEYED or (name in KEYS_HELP and random.random() < 0.5)
    return random_case(random, keyed=keyed, sources=1 if name in ONE_SOURCE else random.randrange(1, 5))


def options_for(case: Case, random: Random) -> Options:
    frequencies = {source: float(random.randrange(1, 9)) for source in case.view.sources}
    return Options(random.randrange(1, 4), random.random() < 0.5, random.randrange(1, 4), frequencies)


def simulated(name: str, random: Random, *, forgetful: bool = False) -> tuple[Network, Verdict]:
    """A random case through *name*, its events in random order."""
    case = case_for(name, random)
    algorithm = create(name, case.view, options=options_for(case, random))
    network = Network(
        Forgetful(algorithm) if forgetful else algorithm, case.relations, case.scripts, split=random.random() < 0.3
    )
    run_at_random(network, random)
    return network, check(network.arrivals, network.warehouse.shown, show_bag)


def assert_as_promised(name: str, random: Random, *, forgetful: bool = False) -> None:
    """The promised level is reached, and each state shows just the updates that it says it shows."""
    network, verdict = simulated(name, random, forgetful=forgetful)
    algorithm = network.warehouse.algorithm
    inner = algorithm.inner if isinstance(algorithm, Forgetful) else algorithm
    assert inner.promises is not None
    assert verdict.reaches(inner.promises), verdict.witnesses
    warehouse = network.warehouse
    for shown, upto in zip(warehouse.shown, warehouse.upto, strict=True):
        assert shown == network.arrivals[upto]
    if inner.promises == "COMPLETE":
        assert warehouse.upto == list(range(len(network.arrivals)))
    assert warehouse.waiting() == []
