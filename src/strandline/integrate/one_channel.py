"""One order out of two channels: a source's log of updates, and the connection on which it answers.

The algorithms rest on notices and answers of a source coming in one order: an answer has seen the updates that were
delivered before it, and no others. Where they come apart, an answer says how many of the source's transactions it saw.
It waits for those; and if one that it did not see was delivered already, it is asked for again. Asking again is right:
the query is still open, so that updates delivered meanwhile have been compensated for as they would have been anyway.

What an answer saw is a number, a prefix of the transactions in the order of the log. A source may make commits visible
in another order than its log has them; a driver that finds no prefix asks again, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from strandline.integrate.state import part_of_states

Fate = Literal["deliver", "wait", "ask again"]


@part_of_states
@dataclass(frozen=True)
class Channel:
    """How many transactions of a source were delivered, and the answers that wait for more: query and how many."""

    delivered: int = 0
    waiting: tuple[tuple[str, int], ...] = ()


def fate(channel: Channel, seen: int | None) -> Fate:
    """What is to be done with an answer that has seen *seen* transactions; None: the order is right as it is."""
    if seen is None or seen == channel.delivered:
        return "deliver"
    return "wait" if seen > channel.delivered else "ask again"


def wait(channel: Channel, query: str, seen: int) -> Channel:
    """Keep the answer to *query* until *seen* transactions are delivered."""
    return replace(channel, waiting=(*channel.waiting, (query, seen)))


def delivered(channel: Channel, sequence: int) -> tuple[Channel, tuple[str, ...]]:
    """A transaction was delivered: the queries whose answers are to be delivered right after it."""
    due = tuple(query for query, seen in channel.waiting if seen == sequence)
    return Channel(sequence, tuple(each for each in channel.waiting if each[1] != sequence)), due
