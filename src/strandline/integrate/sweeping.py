"""SWEEP's way of computing the effect of one update after another (Wang et al., section 3.2).

The update's delta tours the other relations. An answer has seen every update that arrived before it; those that are
still queued must not be in it, and what they added is computed here, from the partial answer and their deltas: no
second query. A transaction over several places is swept part after part, and parts not yet swept count as queued.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strandline.algebra.term import Sum, Term
from strandline.integrate.algorithm import unknown_query
from strandline.integrate.messages import Answer, Message, Messages, Update, delta
from strandline.integrate.state import part_of_states
from strandline.integrate.tour import Tour, absorb, depart, next_place, result, visit
from strandline.integrate.view import View


@part_of_states
@dataclass(frozen=True)
class Queued:
    """An update, and its places that are still to be swept."""

    update: Update
    places: tuple[int, ...]


@part_of_states
@dataclass(frozen=True)
class Sweeping:
    """Updates in order of arrival, the tour of the first of them, and what its finished tours gave."""

    queue: tuple[Queued, ...] = ()
    tour: Tour | None = None
    swept: Sum = ()

    @property
    def ready(self) -> bool:
        """Whether there is an update to sweep, and no answer is waited for."""
        return bool(self.queue) and self.tour is None


@dataclass(frozen=True)
class Progress:
    """What became of a sweep; *finished* is the first update with its effect, if it is at its end."""

    sweeping: Sweeping
    messages: Messages
    finished: tuple[Update, Sum] | None = None


def arrived(view: View, sweeping: Sweeping, update: Update) -> Sweeping:
    """*update* queued."""
    return replace(sweeping, queue=(*sweeping.queue, Queued(update, view.places(update.relations))))


def advanced(view: View, sweeping: Sweeping) -> Progress:
    """Go on with the first update until an answer is needed or it is finished."""
    messages: list[Message] = []
    while True:
        head, *rest = sweeping.queue
        tour = sweeping.tour
        if tour is None:
            if not head.places:
                after = Sweeping(tuple(rest))
                return Progress(after, tuple(messages), (head.update, sweeping.swept))
            place, *left = head.places
            number = head.update.number
            tour, evaluate = depart(view, f"{number}.{place}", number, {place: delta(number, view.relations[place])})
            messages.append(evaluate)
            sweeping = replace(sweeping, queue=(replace(head, places=tuple(left)), *rest), tour=tour)
        place_to_visit = next_place(view, tour)
        if place_to_visit is not None:
            tour, query = visit(view, tour, place_to_visit)
            return Progress(replace(sweeping, tour=tour), (*messages, query))
        sweeping = replace(sweeping, tour=None, swept=(*sweeping.swept, Term(result(view, tour))))


def answered(view: View, sweeping: Sweeping, answer: Answer) -> Progress:
    """Take the answer to the visit under way, without what queued updates added to it, and go on."""
    tour = sweeping.tour
    if tour is None or tour.visiting is None or tour.query != answer.query:
        raise unknown_query(answer)
    place = tour.visiting
    queued = [each.update.number for each in sweeping.queue if place in each.places]
    tour, evaluate = absorb(view, tour, [delta(number, view.relations[place]) for number in queued])
    progress = advanced(view, replace(sweeping, tour=tour))
    return replace(progress, messages=(evaluate, *progress.messages))
