"""Upkeep without Spark: what is old is found in the catalog, and steps can be done again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.algebra.schema import Column
from strandline.catalog import Catalog, Json, Lease, StateEntry, Transaction, ViewRecord
from strandline.engine.arranged import Arranged
from strandline.engine.little import ARRANGED, FOUND
from strandline.engine.session import Engine
from strandline.errors import StoreError
from strandline.ingest.uncopied import HISTORY
from strandline.propagate.context import Context
from strandline.propagate.progress import Event, nobody
from strandline.propagate.vdag import Vdag
from strandline.sql.relations import Relation
from strandline.store import layout
from strandline.store.tables import retention
from strandline.upkeep.leftovers import leftovers
from strandline.upkeep.maintain import Maintenance, steps_of
from strandline.upkeep.outlived import outlived
from strandline.upkeep.report import MaintainReport
from tests.catalog.clock import SetClock

DAY = timedelta(days=1)


class NoRelations:
    """A warehouse whose queries nobody asks for."""

    def find(self, name: str) -> Relation | None:
        return None

    def names(self) -> list[str]:
        return []


class Warehouse:
    """A catalog, and tables of one column, one file more in each version."""

    def __init__(self, folder: Path) -> None:
        self.root = str(folder / "warehouse")
        self.clock = SetClock()
        self.clock.now = datetime.now(UTC) + timedelta(minutes=10)  # files are dated by the machine
        self.catalog = Catalog.open(f"sqlite:///{folder}/catalog.db", clock=self.clock)
        self.lease: Lease = self.catalog.lock.acquire("test")
        self._steps = count(1)
        self.catalog.sources.put("shop", kind="delta", config={})
        self.catalog.leaves.put("shop", "orders", location=None, columns=(), key=(), position=None)

    def view(self, name: str, *inputs: str, kind: str = "view") -> ViewRecord:
        return self.catalog.views.add(
            name,
            kind=kind,  # type: ignore[arg-type]
            sql="SELECT 1",
            options={},
            definition={"block": None, "reason": {"code": "COST", "text": ""}},
            fingerprint=name,
            columns=(Column("a", "bigint"),),
            inputs=inputs,
            location=f"views/{name}-1",
        )

    def path(self, view: ViewRecord) -> str:
        return f"{self.root}/{view.location}"

    def append(self, view: ViewRecord, **inputs: Json) -> int:
        """One more version of a table, which counts."""
        write_deltalake(
            self.path(view),
            pa.table({"a": [next(self._steps)]}),
            mode="append",
            configuration=retention("7 days"),
        )
        return self.record(view, DeltaTable(self.path(view)).version(), **inputs)

    def record(self, view: ViewRecord, version: int, **inputs: Json) -> int:
        step = f"step-{next(self._steps)}"
        self.catalog.versions.record(view.id, version, inputs, {"shop.orders": {"version": version}}, step)
        return version

    def publish(self, **versions: tuple[ViewRecord, int]) -> int:
        entries = [
            StateEntry(name, view.id, version, {"shop.orders": {"version": version}})
            for name, (view, version) in versions.items()
        ]
        return self.catalog.states.publish(None, entries, self.lease).number

    def maintenance(self, keep: str = "7 days") -> Maintenance:
        self.clock.move(1)
        number, unit = keep.split()
        context = Context(self.catalog, Engine(), Vdag(()), {}, NoRelations(), self.root, keep)
        return Maintenance(context, timedelta(**{unit: int(number)}))

    def maintain(self, keep: str = "7 days") -> MaintainReport:
        found = self.maintenance(keep)
        steps = found.steps()
        return found.carry_out(found.begin(steps, self.lease), steps, self.lease, nobody)

    def rows(self, view: ViewRecord, version: int) -> list[int]:
        return sorted(DeltaTable(self.path(view), version=version).to_pyarrow_table()["a"].to_pylist())


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    found = Warehouse(tmp_path)
    yield found
    found.catalog.close()


def pin(view: ViewRecord, version: int) -> Json:
    return {"view": view.id, "version": version}


def test_versions_stay_that_a_kept_state_shows_or_rests_on(warehouse: Warehouse) -> None:
    low, high = warehouse.view("low"), warehouse.view("high", "low")
    for version in range(6):
        warehouse.record(low, version)
    warehouse.record(high, 0, low=pin(low, 1))
    warehouse.record(high, 1, low=pin(low, 3))
    warehouse.publish(low=(low, 1), high=(high, 0))
    warehouse.clock.now += 8 * DAY
    warehouse.publish(low=(low, 4), high=(high, 1))
    found = outlived(warehouse.catalog, warehouse.clock.now - 7 * DAY)
    assert found.states == (1,)
    warehouse.catalog.purging.purge(found, warehouse.lease)
    left = {view.name: len(warehouse.catalog.versions.all(view.id)) for view in (low, high)}
    # The state shows version 4 of the lower view, and the one above was computed from version 3.
    assert left == {"low": 3, "high": 1}


def test_the_newest_state_stays_however_old_and_dropped_views_as_long_as_it_shows_them(warehouse: Warehouse) -> None:
    view, gone = warehouse.view("v"), warehouse.view("gone")
    warehouse.record(view, 0)
    warehouse.record(gone, 0)
    warehouse.publish(v=(view, 0), gone=(gone, 0))
    warehouse.catalog.views.drop("gone")
    warehouse.clock.now += 90 * DAY
    found = outlived(warehouse.catalog, warehouse.clock.now - 7 * DAY)
    assert (found.states, found.versions, found.views) == ((), {}, ())
    warehouse.publish(v=(view, 0))
    found = outlived(warehouse.catalog, warehouse.clock.now - 7 * DAY)
    assert (found.states, found.views) == ((1,), (gone.id,))
    assert warehouse.catalog.purging.purge(found, warehouse.lease)["views"] == 1
    assert warehouse.catalog.views.by_id(gone.id) is None


def test_transactions_before_the_positions_that_are_left_go_but_recent_ones_stay(warehouse: Warehouse) -> None:
    view = warehouse.view("v")
    old = warehouse.clock.now - 30 * DAY
    logged = [Transaction({"version": n}, None, old if n < 4 else warehouse.clock.now) for n in range(1, 6)]
    warehouse.catalog.unit_of_work.append("shop.orders", logged, {"version": 5})
    warehouse.record(view, 3)
    warehouse.publish(v=(view, 3))
    found = outlived(warehouse.catalog, warehouse.clock.now - 7 * DAY)
    assert warehouse.catalog.purging.purge(found, warehouse.lease)["transactions"] == 2
    assert [t.position for t in warehouse.catalog.unit_of_work.since("shop.orders")] == [
        {"version": 3},
        {"version": 4},
        {"version": 5},
    ]


def test_single_updates_since_a_purged_state_go_with_it(warehouse: Warehouse) -> None:
    base = warehouse.view("b", kind="base")
    history: Json = {"path": f"{warehouse.root}/histories/b/1", "updates": [["shop", 1]]}
    for version in range(3):
        warehouse.record(base, version, **{HISTORY: history})
        warehouse.publish(b=(base, version))
        warehouse.clock.now += 5 * DAY
    found = outlived(warehouse.catalog, warehouse.clock.now - 11 * DAY)
    assert found.states == (1,)
    warehouse.catalog.purging.purge(found, warehouse.lease)
    assert [v.inputs[HISTORY] for v in warehouse.catalog.versions.all(base.id)] == [None, history]


def grown(warehouse: Warehouse) -> tuple[ViewRecord, ViewRecord]:
    """Two views, one of many small files below the other, and a state of each version."""
    low, high = warehouse.view("low"), warehouse.view("high", "low")
    for _ in range(6):
        version = warehouse.append(low)
        warehouse.publish(low=(low, version), high=(high, warehouse.append(high, low=pin(low, version))))
    return low, high


def test_a_compacted_version_is_named_wherever_the_one_before_was(warehouse: Warehouse) -> None:
    low, high = grown(warehouse)
    before = warehouse.rows(low, 5)
    report = warehouse.maintain()
    assert report.ok and report.bytes_freed == 0
    assert (report.tables["low"].files_before, report.tables["low"].files) == (6, 1)
    newest = warehouse.catalog.states.newest()
    assert newest is not None and newest.entries["low"].version == 6 == DeltaTable(warehouse.path(low)).version()
    recorded = warehouse.catalog.versions.all(high.id)
    assert [one.inputs["low"] for one in recorded] == [pin(low, n) for n in (0, 1, 2, 3, 4, 6)]
    assert warehouse.rows(low, 6) == before
    # Files that older states need stay, whoever vacuums in the usual way.
    DeltaTable(warehouse.path(low)).vacuum(dry_run=False)
    assert [len(warehouse.rows(low, version)) for version in range(5)] == [1, 2, 3, 4, 5]
    assert warehouse.maintain().tables["low"].files_before == 0


def test_old_files_stay_that_the_newest_state_still_needs(warehouse: Warehouse) -> None:
    low, high = grown(warehouse)
    write_deltalake(warehouse.path(high), pa.table({"a": [1]}), mode="overwrite")
    warehouse.record(high, 6, low=pin(low, 5))
    report = warehouse.maintain("0 seconds")
    assert report.ok and report.purged["states"] == 5
    assert len(warehouse.rows(high, 5)) == 6
    assert report.tables["low"].bytes_freed and report.tables["high"].bytes_freed == 0


class Killed(BaseException):
    """The process ends here."""


def test_killed_at_any_step_the_rest_is_done_later(tmp_path: Path) -> None:
    for at in range(100):
        warehouse = Warehouse(tmp_path / str(at))
        low, high = grown(warehouse)
        expected = warehouse.rows(low, 5)
        left = Path(warehouse.root, "deltas", "left")
        left.mkdir(parents=True)
        first = warehouse.maintenance("0 seconds")
        steps = first.steps()
        seen = count()

        def watch(event: Event, seen: Iterator[int] = seen, at: int = at) -> None:
            if next(seen) == at:
                raise Killed

        identity = first.begin(steps, warehouse.lease)
        try:
            first.carry_out(identity, steps, warehouse.lease, watch)
            finished = True
        except Killed:
            finished = False
            unfinished = warehouse.catalog.refreshes.unfinished()
            assert unfinished is not None and steps_of(unfinished.plan) == steps
            report = warehouse.maintenance("0 seconds").carry_out(identity, steps, warehouse.lease, nobody)
            assert report.ok and report.purged["states"] == 5 and report.tables["low"].files == 1
        newest = warehouse.catalog.states.newest()
        assert newest is not None and warehouse.rows(low, newest.entries["low"].version) == expected
        assert [len(list(Path(warehouse.path(view)).glob("*.parquet"))) for view in (low, high)] == [1, 1]
        assert not left.exists() and warehouse.catalog.refreshes.unfinished() is None
        warehouse.catalog.close()
        if finished:
            assert at == 2 * len(steps)
            return


def test_a_table_whose_files_are_gone_does_not_keep_the_others_from_being_put_in_order(warehouse: Warehouse) -> None:
    _, high = grown(warehouse)
    for file in Path(warehouse.path(high)).glob("*.parquet"):
        file.unlink()
    looked = warehouse.maintenance().would_do()
    assert set(looked.problems) == {"high"} and looked.tables["low"].files_before == 6
    report = warehouse.maintain()
    assert "FILES_GONE" in report.problems["high"] and "states 1, 2, 3, 4, 5, 6 show" in report.problems["high"]
    assert report.tables["low"].files == 1


def test_a_table_whose_log_is_broken_does_not_keep_the_others_from_being_put_in_order(warehouse: Warehouse) -> None:
    _, high = grown(warehouse)
    min(Path(warehouse.path(high), "_delta_log").glob("*.json")).unlink()
    report = warehouse.maintain()
    assert set(report.problems) == {"high"} and "FILES_GONE" in report.problems["high"]
    assert report.tables["low"].files == 1


def test_a_clock_that_was_ahead_does_not_hide_what_was_replaced_after_it(warehouse: Warehouse) -> None:
    """The commits that follow one from a clock that was ahead are as old as they say."""
    low = warehouse.view("low")
    for version, value in enumerate((6, 7, 8, 9)):
        write_deltalake(warehouse.path(low), pa.table({"a": [value]}), mode="overwrite")
        warehouse.record(low, version)
        warehouse.publish(low=(low, version))
    for version, days in {1: 365, 2: -30, 3: -30}.items():
        redate(Path(warehouse.path(low), "_delta_log", f"{version:020d}.json"), timedelta(days=days))
    assert warehouse.maintain().ok
    assert [warehouse.rows(low, version) for version in range(4)] == [[6], [7], [8], [9]]


def redate(commit: Path, ahead: timedelta) -> None:
    """Make a commit say that it was made at another time."""
    moment = int((datetime.now(UTC) + ahead).timestamp() * 1000)
    actions = [json.loads(line) for line in commit.read_text().splitlines() if line.strip()]
    for action in actions:
        for kind, field in (("commitInfo", "timestamp"), ("remove", "deletionTimestamp")):
            if kind in action:
                action[kind][field] = moment
    commit.write_text("\n".join(json.dumps(action) for action in actions))


def test_what_is_kept_of_files_is_cleared_when_they_are_gone(warehouse: Warehouse, tmp_path: Path) -> None:
    now, kept = warehouse.clock.now, Path(layout.kept_path(warehouse.root))
    data = [tmp_path / "here.parquet", tmp_path / "gone.parquet"]
    for file in data:
        pq.write_table(pa.table({"k": [1, 2]}), file)
        Arranged(kept / ARRANGED).rows(str(file), "k", ["k"], np.array([1]), lambda _: pa.array([1, 2]))
    found = kept / FOUND / "of a step that was killed"
    found.mkdir(parents=True)
    data[1].unlink()
    left = leftovers(warehouse.catalog, warehouse.root, now + 2 * DAY, 7 * DAY)
    assert len(left) == 2 and str(found) in {each.path for each in left}
    assert leftovers(warehouse.catalog, warehouse.root, now, 7 * DAY) == []


def test_what_the_catalog_does_not_name_is_cleared_when_it_is_old(warehouse: Warehouse) -> None:
    grown(warehouse)
    stray = Path(warehouse.root, "views", "stray")
    stray.mkdir()
    (stray / "file").write_text("four")
    arguments = (warehouse.catalog, warehouse.root)
    now = warehouse.clock.now
    assert leftovers(*arguments, now, 7 * DAY) == []
    assert [(Path(found.path), found.bytes) for found in leftovers(*arguments, now + 2 * DAY, 7 * DAY)] == [(stray, 4)]
    Path(warehouse.root, ".strandline").write_text('["another"]')
    with pytest.raises(StoreError, match="ROOT_SHARED"):
        leftovers(*arguments, now, 7 * DAY)
