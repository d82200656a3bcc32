"""From the commit of a row to the first state that shows it."""

from __future__ import annotations

from bench.freshness import Commit, State, lags, percentile


def test_a_commit_waits_for_the_first_state_that_shows_it() -> None:
    commits = [Commit(1, 10.0), Commit(2, 11.0), Commit(3, 12.0), Commit(4, 13.0)]
    states = [State(9.0, 0), State(12.5, 2), State(14.0, 2), State(16.0, 3)]
    # Nothing is known yet of a commit that no state shows.
    assert lags(commits, states) == [(10.0, 2.5), (11.0, 1.5), (12.0, 4.0)]


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert (percentile(values, 50), percentile(values, 95), percentile([7.0], 99)) == (51.0, 96.0, 7.0)
