"""Orders of events: at random, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from strandline.integrate.network import Action, Network


def run_at_random(network: Network, random: Random) -> list[Action]:
    """Run *network* until all is quiet, each step chosen at random; the steps taken."""
    return _run(network, lambda possible: random.randrange(len(possible)))


def run_in_turn(network: Network) -> list[Action]:
    """Run *network* with each transaction settled before the next one commits: the best case."""

    def first_the_rest(possible: list[Action]) -> int:
        waiting = [place for place, (kind, _) in enumerate(possible) if kind != "commit"]
        return waiting[0] if waiting else 0

    return _run(network, first_the_rest)


def run_all_first(network: Network) -> list[Action]:
    """Run *network* with all transactions reported before the first query is served: the worst case."""
    order = ("commit", "notice", "serve", "answer")
    return _run(network, lambda possible: min(range(len(possible)), key=lambda place: order.index(possible[place][0])))


def every_run(make: Callable[[], Network]) -> Iterator[tuple[Network, list[Action]]]:
    """Every order of events there is, each with the network at its end; *make* makes the network anew."""
    waiting: list[list[int]] = [[]]
    while waiting:
        prefix = waiting.pop()
        choices = iter(prefix)
        taken: list[int] = []

        def choose(possible: list[Action], choices: Iterator[int] = choices, taken: list[int] = taken) -> int:
            chosen = next(choices, None)
            if chosen is None:
                # The first way is taken now; the others are left for later.
                waiting.extend([*taken, other] for other in range(1, len(possible)))
                chosen = 0
            taken.append(chosen)
            return chosen

        network = make()
        yield network, _run(network, choose)


def _run(network: Network, choose: Callable[[list[Action]], int]) -> list[Action]:
    done: list[Action] = []
    while True:
        possible = network.actions()
        if possible:
            done.append(possible[choose(possible)])
            network.do(done[-1])
        elif not network.settle():
            return done
