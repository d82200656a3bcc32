"""For random views and random changes, the refreshed view is the recomputed view, as a bag.

``STRANDLINE_EXAMPLES`` sets the number of histories (then drawn anew in each run) for longer campaigns.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.algebra.block import Block, Method
from strandline.algebra.representation import counted, may_count
from strandline.algebra.schema import names
from tests.algebra.replay import computed, refreshed
from tests.algebra.views import History, histories

EXAMPLES = int(os.environ.get("STRANDLINE_EXAMPLES", "300"))


def campaign(examples: int) -> settings:
    return settings(
        max_examples=max(1, examples),
        deadline=None,
        derandomize="STRANDLINE_EXAMPLES" not in os.environ,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@campaign(EXAMPLES)
@given(histories())
def test_every_view_equals_its_recomputation_after_every_step(history: History) -> None:
    replay(history)


@campaign(EXAMPLES // 3)
@given(histories(insert_only=True))
def test_insertions_are_absorbed_as_recomputation_would(history: History) -> None:
    replay(history)


@campaign(EXAMPLES // 3)
@given(histories(most_blocks=1))
def test_a_single_block_equals_its_recomputation_after_every_step(history: History) -> None:
    replay(history)


def replay(history: History) -> None:
    contents = computed(history.blocks, history.start)
    leaves = dict(history.start)
    for step in history.steps:
        contents = refreshed(history.blocks, contents, step).after
        leaves.update({name: leaves[name] + delta for name, delta in step.items()})
        fresh = computed(history.blocks, leaves)
        assert contents.stored == fresh.stored
        assert contents.visible == fresh.visible


@campaign(EXAMPLES // 4)
@given(history=histories())
def test_every_method_for_aggregates_gives_what_recomputation_gives(history: History) -> None:
    methods: tuple[Method, ...] = ("summary", "affected")
    contents, leaves = computed(history.blocks, history.start), dict(history.start)
    for step in history.steps:
        explicit = refreshed(history.blocks, contents, step)
        for method in methods:
            done = refreshed(history.blocks, contents, step, method)
            assert done.after == explicit.after, method
            assert done.visible_deltas == explicit.visible_deltas, method
        contents = explicit.after
        leaves.update({name: leaves[name] + delta for name, delta in step.items()})
        assert contents == computed(history.blocks, leaves)


@campaign(EXAMPLES // 3)
@given(histories(), st.data())
def test_the_inputs_of_a_join_may_be_taken_to_change_in_any_order(history: History, data: st.DataObject) -> None:
    names = sorted({name for block in history.blocks for name in block.inputs})
    contents = computed(history.blocks, history.start)
    for step in history.steps:
        order = data.draw(st.permutations(names))[: data.draw(st.integers(0, len(names)))]
        usual = refreshed(history.blocks, contents, step)
        assert refreshed(history.blocks, contents, step, order=order).after == usual.after
        contents = usual.after


@campaign(EXAMPLES // 3)
@given(histories())
def test_counted_duplicates_are_seen_as_stored_ones(history: History) -> None:
    blocks = tuple(_counted(block) for block in history.blocks)
    plain, counts = computed(history.blocks, history.start), computed(blocks, history.start)
    assert counts.visible == plain.visible
    for step in history.steps:
        of_plain, of_counts = refreshed(history.blocks, plain, step), refreshed(blocks, counts, step)
        assert of_counts.visible_deltas == of_plain.visible_deltas
        plain, counts = of_plain.after, of_counts.after
        assert counts.visible == plain.visible
        for block in blocks:
            if block.counted:
                stored = counts.stored[block.node]
                assert all(times == 1 and row[-1] > 0 for row, times in stored.items())


def _counted(block: Block) -> Block:
    return counted(block) if may_count(block) else block


@campaign(EXAMPLES // 4)
@given(histories())
def test_a_claimed_key_is_one(history: History) -> None:
    contents = computed(history.blocks, history.start)
    for block in history.blocks:
        for key, schema, bag in (
            (block.key, block.stored, contents.stored[block.node]),
            (block.visible_key, block.visible, contents.visible[block.node]),
        ):
            if key:
                places = [names(schema).index(name) for name in key]
                found = [tuple(row[place] for place in places) for row in bag.rows()]
                assert len(found) == len(set(found))
