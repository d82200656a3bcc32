"""The border to a driver: what is refused, what is local, one order out of two channels, state as text."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from strandline.algebra.bag import SignedBag
from strandline.algebra.plan import At, Filter, GroupBy, Join, Output, Plan, Project, Scan, children
from strandline.algebra.scalar import Call, Col, Lit, equality
from strandline.algebra.schema import Column
from strandline.errors import IntegrateError
from strandline.integrate import one_channel
from strandline.integrate.algorithms import ALGORITHMS, Options, create
from strandline.integrate.eca import Eca
from strandline.integrate.eca_local import locality
from strandline.integrate.grouped import Grouped
from strandline.integrate.memory import Memory
from strandline.integrate.messages import Answer, Delta, Evaluate, Install, Query, Update
from strandline.integrate.network import Network
from strandline.integrate.schedules import run_at_random
from strandline.integrate.state import dump, load
from strandline.integrate.view import ForeignKey, View
from tests.integrate.simulation import case_for

FIELDS = (Column("a", "bigint"), Column("b", "bigint"))
R = Scan(At("r"), "r", FIELDS, ("a",))
S = Scan(At("s"), "s", FIELDS, ("a",))
OUTPUTS = tuple(Output(Column(name, "bigint"), Col(name)) for name in ("r.a", "s.a"))
PLAN = Project(Filter(Join((R, S), (equality("r.b", "s.a"),)), Call(">", (Col("r.b"), Lit(0)))), OUTPUTS)
ONE = View.of(PLAN, {"r": "one", "s": "one"})
TWO = View.of(PLAN, {"r": "one", "s": "two"})


def row(*values: int, count: int = 1) -> SignedBag:
    return SignedBag([(values, count)])


def update(number: int, **counts: tuple[int, int]) -> Update:
    return Update(number, "one", number, tuple(Delta(name, *found) for name, found in counts.items()))


# Views


def test_a_plan_is_taken_apart_into_scans_conditions_and_outputs() -> None:
    assert ONE.relations == ("r", "s")
    assert ONE.conditions == (equality("r.b", "s.a"), Call(">", (Col("r.b"), Lit(0))))
    assert (ONE.sources, TWO.sources) == (("one",), ("one", "two"))
    assert View.of(Filter(R, Call(">", (Col("r.b"), Lit(0)))), {"r": "one"}).columns == R.columns


def test_what_is_no_selection_projection_or_join_is_refused() -> None:
    with pytest.raises(IntegrateError, match=r"\[NOT_SELECT_PROJECT_JOIN\] .* has a GroupBy in it"):
        View.of(GroupBy(R, (), ()), {"r": "one"})


def test_a_key_may_be_shown_by_a_column_that_equals_it() -> None:
    assert ONE.key_outputs(1) == (("s.a", "s.a"),)
    equal = View.of(
        Project(Join((R, S), (equality("r.b", "s.a"),)), (OUTPUTS[0], _output("r.b"))), {"r": "o", "s": "o"}
    )
    assert equal.key_outputs(1) == (("r.b", "s.a"),)
    hidden = View.of(Project(Join((R, S), ()), (OUTPUTS[0], _output("r.b"))), {"r": "one", "s": "one"})
    assert hidden.key_outputs(1) is None
    assert not hidden.shows_all_keys


def _output(name: str) -> Output:
    return Output(Column(name, "bigint"), Col(name))


# What is refused


@pytest.mark.parametrize("name", ["basic", "rv", "eca", "eca-key", "eca-local", "lca"])
def test_algorithms_of_one_source_refuse_several(name: str) -> None:
    with pytest.raises(IntegrateError, match=rf"\[SEVERAL_SOURCES\] {name} .* reads one, two"):
        create(name, TWO)


@pytest.mark.parametrize("name", ["eca-key", "strobe", "c-strobe"])
def test_keyed_algorithms_refuse_a_view_without_keys(name: str) -> None:
    view = View.of(Project(Join((R, S), ()), OUTPUTS[:1]), {"r": "one", "s": "one"})
    with pytest.raises(IntegrateError, match=rf"\[KEYS_MISSING\] {name} .* none of s"):
        create(name, view)


def test_an_algorithm_that_does_not_exist_is_refused() -> None:
    with pytest.raises(IntegrateError, match=r"\[UNKNOWN_ALGORITHM\] .*'ecca'; there are basic, rv"):
        create("ecca", ONE)


def test_groups_must_have_each_source_once() -> None:
    for groups in ((("one",),), (("one",), ("one", "two")), (("one", "two", "three"),)):
        with pytest.raises(IntegrateError, match="GROUPS_DO_NOT_FIT"):
            Grouped(TWO, sources=groups)


def test_a_transaction_over_several_sources_is_refused() -> None:
    memory = Memory(create("sweep", TWO), {"r": SignedBag(), "s": SignedBag()})
    with pytest.raises(IntegrateError, match=r"\[GLOBAL_TRANSACTION\] a transaction of one changes s, which is at two"):
        memory.update("one", 1, {"r": row(1, 1), "s": row(1, 1)})


def test_a_transaction_of_a_source_that_the_view_does_not_read_is_refused() -> None:
    memory = Memory(create("sweep", TWO), {"r": SignedBag(), "s": SignedBag()})
    with pytest.raises(IntegrateError, match=r"\[UNKNOWN_SOURCE\] .* comes from three; the view reads one, two"):
        memory.update("three", 1, {})


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_an_answer_to_nothing_is_refused(name: str) -> None:
    with pytest.raises(IntegrateError, match=r"\[UNKNOWN_QUERY\] .* query 7"):
        create(name, ONE).on_answer(Answer("7"))


# Irrelevant and local updates


def test_rows_that_fail_the_selection_are_dropped_before_a_query_is_sent() -> None:
    memory = Memory(create("eca", ONE), {"r": SignedBag(), "s": row(1, 1)})
    assert memory.update("one", 1, {"r": row(5, -1)}) == []
    (sent,) = memory.update("one", 2, {"r": row(5, -1) + row(6, 1)})
    assert [dict(rows) for rows in sent.literals.values()] == [{(6, 1): 1}]
    assert memory.update("one", 3, {"elsewhere": row(1)}) == []
    memory.answer(sent.query.id, {"": row(6, 1)})
    assert (memory.upto, memory.view) == ([0, 1, 3], row(6, 1))


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ({}, "irrelevant"),
        ({"r": (0, 2)}, "key-delete"),
        ({"r": (0, 1), "s": (0, 1)}, "key-delete"),
        ({"r": (1, 1)}, None),
        ({"s": (1, 0)}, None),
    ],
)
def test_which_updates_are_local(counts: dict[str, tuple[int, int]], reason: str | None) -> None:
    assert locality(ONE, update(1, **counts)) == reason


def test_an_insert_that_no_row_refers_to_yet_is_local() -> None:
    view = View.of(PLAN, {"r": "one", "s": "one"}, (ForeignKey("r", ("b",), "s", ("a",)),))
    assert locality(view, update(1, s=(3, 0))) == "foreign-key"
    assert locality(view, update(1, s=(1, 1))) is None
    assert locality(view, update(1, r=(1, 0))) is None
    memory = Memory(create("eca-local", view), {"r": SignedBag(), "s": SignedBag()})
    assert memory.update("one", 1, {"s": row(4, 0)}) == []
    (sent,) = memory.update("one", 2, {"r": row(1, 4)})
    memory.answer(sent.query.id, {"2": row(1, 4)})
    assert memory.view == row(1, 4)


# Two channels


def test_an_answer_waits_for_the_updates_that_it_saw() -> None:
    memory = Memory(create("eca", ONE), {"r": SignedBag(), "s": row(1, 1)})
    (first,) = memory.update("one", 1, {"r": row(5, 1)})
    assert memory.answer(first.query.id, {"": row(5, 1)}, seen=2) == []
    assert memory.view == SignedBag()
    (second,) = memory.update("one", 2, {"s": row(1, 1, count=-1)})
    assert [sent.query.id for sent in memory.waiting()] == [second.query.id]


def test_an_answer_that_missed_an_update_is_asked_for_again() -> None:
    memory = Memory(create("eca", ONE), {"r": SignedBag(), "s": row(1, 1)})
    (first,) = memory.update("one", 1, {"r": row(5, 1)})
    memory.update("one", 2, {"r": row(6, 1)})
    assert memory.answer(first.query.id, {"": row(5, 1)}, seen=1) == [first]
    assert memory.answer(first.query.id, {"": row(5, 1)}, seen=2) == []
    assert len(memory.waiting()) == 1


def test_the_fate_of_an_answer() -> None:
    channel = one_channel.Channel(3)
    assert [one_channel.fate(channel, seen) for seen in (None, 2, 3, 4)] == ["deliver", "ask again", "deliver", "wait"]
    waiting = one_channel.wait(one_channel.wait(channel, "7", 4), "8", 5)
    after, due = one_channel.delivered(waiting, 4)
    assert (due, after) == (("7",), one_channel.Channel(4, (("8", 5),)))


@pytest.mark.parametrize("name", ["eca", "eca-key", "lca", "sweep", "strobe", "c-strobe", "parallel-groups"])
def test_channels_that_overtake_each_other_change_nothing(name: str) -> None:
    for seed in range(40):
        random = Random(seed)
        case = case_for(name, random)
        network = Network(create(name, case.view), case.relations, case.scripts, split=True)
        run_at_random(network, random)
        for shown, upto in zip(network.warehouse.shown, network.warehouse.upto, strict=True):
            assert shown == network.arrivals[upto]
        assert network.warehouse.view == network.arrivals[-1]


# State and messages


def test_state_is_text_without_rows() -> None:
    algorithm = Eca(ONE)
    (query,) = algorithm.on_update(update(1, r=(1, 0)))
    assert isinstance(query, Query)
    text = dump(algorithm.state)
    json.loads(text)
    again = Eca(ONE, load(text))
    assert again.state == algorithm.state
    (install,) = again.on_answer(Answer(query.id))
    assert isinstance(install, Install)
    assert install.upto == 1


@pytest.mark.parametrize("name", ["eca-key", "strobe", "c-strobe"])
def test_plans_stay_flat_though_very_many_updates_arrive_while_a_query_is_open(name: str) -> None:
    algorithm = create(name, ONE)
    messages = list(algorithm.on_update(update(1, s=(1, 0))))
    (query,) = [message for message in messages if isinstance(message, Query)]
    for number in range(2, 300):
        algorithm.on_update(update(number, r=(0, 1)))
    messages = list(algorithm.on_answer(Answer(query.id)))
    assert messages
    assert max(depth(plan) for message in messages for plan in plans(message)) < 15


def plans(message: object) -> list[Plan]:
    match message:
        case Evaluate(plan=plan):
            return [plan]
        case Install(changes=changes):
            return [plan for _, plan in changes]
    return []


def depth(plan: Plan) -> int:
    return 1 + max((depth(child) for child in children(plan)), default=0)


def test_doing_an_event_again_gives_the_same_messages() -> None:
    for name in ("eca-key", "sweep", "c-strobe", "keyed-groups", "strobe"):
        one, other = create(name, ONE), create(name, ONE)
        event = update(1, r=(1, 1), s=(1, 0))
        assert one.on_update(event) == other.on_update(event)


def test_bags_that_nothing_refers_to_are_forgotten() -> None:
    for name in ALGORITHMS:
        random = Random(5)
        case = case_for(name, random)
        network = Network(create(name, case.view, options=Options()), case.relations, case.scripts)
        run_at_random(network, random)
        memory: Any = network.warehouse
        assert memory._bags == {}, name
