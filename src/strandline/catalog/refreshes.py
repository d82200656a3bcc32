"""Refreshes and their steps: what was planned, how far it came, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session, defer

from strandline.catalog.damage import mapping, one_of, understanding
from strandline.catalog.database import Database
from strandline.catalog.jsontext import Json
from strandline.catalog.lease import Lease, require_held
from strandline.catalog.messages import unknown
from strandline.catalog.models import RefreshRow, StepRow
from strandline.catalog.moments import Clock
from strandline.catalog.records import (
    HistoryEntry,
    NewVersion,
    RefreshRecord,
    RefreshStatus,
    StepRecord,
    StepStatus,
)
from strandline.catalog.versions import insert_version
from strandline.errors import CatalogError

NOW = timedelta()
"""No time ago."""


class Refreshes:
    """Refreshes by id; at most one is running."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def begin(
        self, id: str, plan: Json, steps: Sequence[tuple[str, str, str | None]], lease: Lease, ago: timedelta = NOW
    ) -> RefreshRecord:
        """Start a refresh with all its steps, each ``(id, kind, view)``, pending; it was called for some time *ago*."""
        with self._database.writing() as session:
            require_held(session, lease)
            _refuse_second(session, id)
            _refuse_known_steps(session, [step for step, _, _ in steps])
            row = RefreshRow(id=id, plan=plan, status="running", started_at=self._clock() - ago, owner=lease.owner)
            session.add(row)
            session.flush()
            session.add_all(
                StepRow(id=step, refresh_id=id, seq=seq, kind=kind, view=view, status="pending", result={})
                for seq, (step, kind, view) in enumerate(steps, 1)
            )
            return _refresh_record(row)

    def unfinished(self) -> RefreshRecord | None:
        """The refresh that is running, or was when its process ended."""
        with self._database.reading() as session:
            row = session.scalar(select(RefreshRow).where(RefreshRow.status == "running"))
            return _refresh_record(row) if row else None

    def get(self, id: str) -> RefreshRecord | None:
        """The refresh *id*."""
        with self._database.reading() as session:
            row = session.scalar(select(RefreshRow).where(RefreshRow.id == id))
            return _refresh_record(row) if row else None

    def recent(self, limit: int) -> tuple[RefreshRecord, ...]:
        """The last refreshes, newest first."""
        with self._database.reading() as session:
            rows = session.scalars(select(RefreshRow).order_by(RefreshRow.seq.desc()).limit(limit))
            return tuple(map(_refresh_record, rows))

    def last_profiled(self, beginning: str = "") -> RefreshRecord | None:
        """The last refresh that has a profile, among those whose id has this *beginning*."""
        with self._database.reading() as session:
            wanted = select(RefreshRow).where(RefreshRow.id.startswith(beginning, autoescape=True))
            rows = session.scalars(wanted.order_by(RefreshRow.seq.desc()).execution_options(yield_per=1))
            return next((_refresh_record(row) for row in rows if row.profile is not None), None)

    def steps(self, refresh_id: str) -> tuple[StepRecord, ...]:
        """The steps of a refresh, in order."""
        with self._database.reading() as session:
            rows = session.scalars(select(StepRow).where(StepRow.refresh_id == refresh_id).order_by(StepRow.seq))
            return tuple(map(_step_record, rows))

    def history(self, view: str, limit: int) -> tuple[HistoryEntry, ...]:
        """The last steps that concerned *view*, each with its refresh, newest first."""
        with self._database.reading() as session:
            rows = session.execute(
                select(StepRow, RefreshRow)
                .join(RefreshRow, StepRow.refresh_id == RefreshRow.id)
                .where(StepRow.view == view)
                .order_by(RefreshRow.seq.desc(), StepRow.seq.desc())
                .limit(limit)
            )
            return tuple(HistoryEntry(_step_record(step), _refresh_record(refresh)) for step, refresh in rows)

    def measured(self, limit: int) -> tuple[tuple[Mapping[str, Json], float | None], ...]:
        """What the last steps that were done gave, and the seconds that they took, newest first."""
        with self._database.reading() as session:
            rows = session.execute(
                select(StepRow.result, StepRow.seconds)
                .join(RefreshRow, StepRow.refresh_id == RefreshRow.id)
                .where(StepRow.status == "done")
                .order_by(RefreshRow.seq.desc(), StepRow.seq.desc())
                .limit(limit)
            )
            return tuple((result, seconds) for result, seconds in rows)

    def step_started(self, step_id: str, lease: Lease, ago: timedelta = NOW) -> None:
        """A step begins, or is done over after a crash; one that was carried out already began some time *ago*.

        No step begins before its refresh, whoever set the clock meanwhile.
        """
        with self._database.writing() as session:
            require_held(session, lease)
            step, refresh = _open_step(session, step_id)
            step.status, step.started_at = "running", max(self._clock() - ago, refresh.started_at)
            step.finished_at = step.seconds = step.error = None
            refresh.owner = lease.owner

    def step_done(
        self,
        step_id: str,
        result: Mapping[str, Json],
        seconds: float | None,
        lease: Lease,
        version: NewVersion | None = None,
    ) -> None:
        """A step is finished; the version it made counts from the same moment. Repeating it does nothing."""
        with self._database.writing() as session:
            require_held(session, lease)
            if version is not None:
                insert_version(session, version, step_id, self._clock)
            step = session.get(StepRow, step_id)
            if step is not None and step.status == "done":
                return
            step, _ = _open_step(session, step_id)
            step.status, step.finished_at = "done", self._clock()
            step.result, step.seconds, step.error = dict(result), seconds, None

    def step_failed(self, step_id: str, error: str, lease: Lease) -> None:
        """A step went wrong."""
        self._end_step(step_id, "failed", error, lease)

    def step_skipped(self, step_id: str, reason: str, lease: Lease) -> None:
        """A step is left out."""
        self._end_step(step_id, "skipped", reason, lease)

    def finish(self, id: str, lease: Lease) -> None:
        """All steps are done, and none of them publishes a state."""
        self._end(id, "done", None, lease)

    def profiled(self, id: str, profile: Json) -> None:
        """Where the seconds of a refresh that has ended went."""
        with self._database.writing() as session:
            session.execute(update(RefreshRow).where(RefreshRow.id == id).values(profile=profile))

    def fail(self, id: str, error: str, lease: Lease) -> None:
        """The refresh went wrong and will not be continued."""
        self._end(id, "failed", error, lease)

    def abandon(self, id: str, lease: Lease) -> None:
        """The refresh, left unfinished, will not be continued."""
        self._end(id, "abandoned", None, lease)

    def _end_step(self, step_id: str, status: StepStatus, why: str, lease: Lease) -> None:
        with self._database.writing() as session:
            require_held(session, lease)
            step, _ = _open_step(session, step_id)
            moment = self._clock()
            if step.started_at is not None:
                step.seconds = max(0.0, (moment - step.started_at).total_seconds())
            step.status, step.finished_at, step.error = status, moment, why

    def _end(self, id: str, status: RefreshStatus, error: str | None, lease: Lease) -> None:
        with self._database.writing() as session:
            require_held(session, lease)
            row = running_refresh(session, id)
            moment = self._clock()
            row.status, row.finished_at, row.error = status, moment, error
            session.execute(
                update(StepRow)
                .where(StepRow.refresh_id == id, StepRow.status.in_(("pending", "running")))
                .values(status="skipped", finished_at=moment, error=f"the refresh was {status}")
            )


def mark_published(session: Session, refresh_id: str, state: int, moment: datetime) -> None:
    """The refresh is done, in the transaction that publishes its state."""
    row = running_refresh(session, refresh_id)
    row.status, row.state, row.finished_at = "done", state, moment


def running_refresh(session: Session, id: str) -> RefreshRow:
    """The refresh *id*, which must not be finished; its plan, which is long, is not read."""
    row = session.scalar(select(RefreshRow).where(RefreshRow.id == id).options(defer(RefreshRow.plan)))
    if row is None:
        newest = select(RefreshRow.id).order_by(RefreshRow.seq.desc()).limit(3)
        raise unknown("refresh", id, session.scalars(newest))
    if row.status != "running":
        raise CatalogError(
            "REFRESH_FINISHED",
            f"refresh {id} cannot go on; it is {row.status} since {row.finished_at:%Y-%m-%d %H:%M:%S} UTC; "
            "plan a new refresh.",
        )
    return row


def _refuse_second(session: Session, id: str) -> None:
    running = session.scalar(select(RefreshRow).where(RefreshRow.status == "running"))
    if running is not None:
        raise CatalogError(
            "REFRESH_UNFINISHED",
            f"refresh {id} cannot begin; refresh {running.id} of {running.owner} is not finished; "
            "continue or abandon it first.",
        )
    if session.scalar(select(RefreshRow.id).where(RefreshRow.id == id)) is not None:
        raise CatalogError(
            "REFRESH_EXISTS", f"refresh {id} cannot begin; there was one of that id; plan a new refresh."
        )


def _refuse_known_steps(session: Session, ids: Sequence[str]) -> None:
    known = session.scalars(select(StepRow.id).where(StepRow.id.in_(ids))).all()
    repeated = sorted({*known, *(one for one, times in Counter(ids).items() if times > 1)})
    if repeated:
        # A step id in a table's history must say which step made the commit.
        raise CatalogError(
            "STEP_EXISTS",
            f"a refresh cannot begin with the steps given; {', '.join(repeated)} would be there twice; "
            "plan a new refresh.",
        )


def _open_step(session: Session, step_id: str) -> tuple[StepRow, RefreshRow]:
    """A step that may still change, with its refresh."""
    step = session.get(StepRow, step_id)
    if step is None:
        running = (
            select(StepRow.id)
            .join(RefreshRow, StepRow.refresh_id == RefreshRow.id)
            .where(RefreshRow.status == "running")
            .order_by(StepRow.seq)
        )
        raise unknown("step", step_id, session.scalars(running))
    refresh = running_refresh(session, step.refresh_id)
    if step.status == "done":
        raise CatalogError(
            "STEP_DONE",
            f"step {step_id} cannot change; it is done since {step.finished_at:%Y-%m-%d %H:%M:%S} UTC; "
            "go on with the next step.",
        )
    return step, refresh


def _refresh_record(row: RefreshRow) -> RefreshRecord:
    with understanding("refreshes", f"row {row.seq} (refresh {row.id})"):
        return RefreshRecord(
            id=row.id,
            plan=row.plan,
            status=one_of(RefreshStatus, row.status),
            started_at=row.started_at,
            finished_at=row.finished_at,
            state=row.state,
            error=row.error,
            owner=row.owner,
            profile=row.profile,
        )


def _step_record(row: StepRow) -> StepRecord:
    with understanding("steps", f"row {row.id}"):
        return StepRecord(
            id=row.id,
            refresh_id=row.refresh_id,
            seq=row.seq,
            kind=row.kind,
            view=row.view,
            status=one_of(StepStatus, row.status),
            started_at=row.started_at,
            finished_at=row.finished_at,
            seconds=row.seconds,
            result=mapping(row.result),
            error=row.error,
        )
