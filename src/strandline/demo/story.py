"""What the demonstration prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from strandline.demo.rounds import Outcome, Refreshed
from strandline.propagate.report import RefreshReport, ViewReport
from strandline.propagate.verify import Verification


class Story:
    """Tells on *console* what happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._chapter = 0

    def say(self, *lines: str) -> None:
        """Plain lines."""
        for line in lines:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def chapter(self, title: str, lines: Iterable[str] = ()) -> None:
        """A heading, and what changed in the sources."""
        self.say("")
        self._console.print(f"{self._chapter}. {title}", style="bold", markup=False, highlight=False)
        self._chapter += 1
        self.say(*(f"   {line}" for line in lines))

    def first_fill(self, report: RefreshReport, views: int) -> None:
        """The first refresh."""
        rows = [(name, view.strategy, view.reason.code, view.rows_inserted, view.seconds) for name, view in
                report.views.items()]  # fmt: skip
        self._table(("view", "strategy", "reason", "rows#", "seconds#"), rows)
        self.say(f"   {views} views in {report.seconds:.1f} s, most of it Spark warming up; published as state "
                 f"{report.state}.")  # fmt: skip

    def legend(self) -> None:
        """What the columns of the tables to come mean."""
        self.say(
            "",
            "   How to read what follows:",
            "   strategy   none; incremental: from the changes; affected: groups that changed are computed anew; full",
            "   reason     why that strategy was taken",
            "   in, out    changed rows of the view's inputs; rows inserted into and deleted from its table",
            "   seconds    for this view in this refresh",
            "   recompute  seconds for its query, run in full over the same inputs and written to a Delta table,",
            "              measured right after the refresh in the same session",
        )

    def refreshed(self, round: Refreshed) -> None:
        """One round."""
        rows = [_row(name, view, round.recomputed.get(name)) for name, view in round.report.views.items()]
        columns = ("view", "strategy", "reason", "in#", "out#", "seconds#", "recompute#")
        if not round.recomputed:
            strategies = {view.strategy for view in round.report.views.values()}
            reasons = {view.reason.code for view in round.report.views.values()}
            self.say(
                f"   all {len(rows)} views: {', '.join(sorted(strategies))} ({', '.join(sorted(reasons))}); "
                f"no Spark job, {round.seconds:.2f} s, still state {round.report.state}"
            )
            return
        self._table(columns, rows)
        self.say(
            f"   refresh: {round.seconds:.1f} s, {round.ingest_seconds:.1f} s of it for reading the sources' changes; "
            f"recomputing the same views: {sum(round.recomputed.values()):.1f} s; state {round.report.state}"
        )
        for name, view in round.report.views.items():
            if view.problem is not None:
                self.say(f"   {name} keeps its last state: {view.problem}")

    def verified(self, found: Sequence[Verification]) -> None:
        """Every view against its recomputation."""
        rows = [(v.view, v.rows, v.missing_count, v.extra_count, "equal" if v.ok else "DIFFERS") for v in found]
        self._table(("view", "rows#", "missing#", "extra#", "outcome"), rows)

    def totals(self, outcome: Outcome, seconds: float) -> None:
        """Refreshing against recomputing, as measured."""
        changed = [one for one in outcome.rounds if one.recomputed]
        refreshing = sum(one.seconds for one in outcome.rounds)
        recomputing = sum(sum(one.recomputed.values()) for one in changed)
        rounds = len(outcome.rounds)
        self.say(
            "",
            f"   {rounds} refreshes took {refreshing:.1f} s. Recomputing the same views each time took "
            f"{recomputing:.1f} s.",
        )
        if recomputing > refreshing:
            self.say("   The refreshes were quicker even on this little data; recomputing grows with the tables.")
        else:
            self.say(
                "   On this little data recomputing is quicker: a Spark job has its fixed cost whatever it reads, and",
                "   a refresh runs more of them. Recomputing grows with the tables, a refresh mostly with the changes.",
            )
        good = sum(one.ok for one in outcome.verified)
        self.say(
            f"   {good} of {len(outcome.verified)} views equal their recomputation. The demo took {seconds:.0f} s."
        )

    def next_steps(self, folder: Path | None) -> None:
        """What to try next."""
        self.say("")
        self._console.print("What to try next", style="bold")
        if folder is None:
            self.say(
                "   strandline demo --folder shop-demo      the same, and keep the project to try things on",
            )
        else:
            project = folder / "project"
            cancel = (
                "from deltalake import DeltaTable; "
                f"DeltaTable('{folder / 'data' / 'shop' / 'orders'}')"
                ".update({'status': \\\"'cancelled'\\\"}, predicate='order_id < 50')"
            )
            self.say(
                f"   The project is in {project}, its tables are in {folder / 'data'}. Change a table, and follow it:",
                f'     python -c "{cancel}"',
                f"     strandline --project {project} status",
                f"     strandline --project {project} plan",
                f"     strandline --project {project} refresh",
                f"     strandline --project {project} verify",
            )
        self.say(
            "   strandline init NAME                    make a project of your own; it says what to put where",
            "   strandline -h                           all commands",
        )

    def _table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("", width=1)
        for name in columns:
            table.add_column(name.removesuffix("#"), justify="right" if name.endswith("#") else "left", no_wrap=True)
        for row in rows:
            table.add_row("", *(_cell(value) for value in row))
        self._console.print(table)


def _row(name: str, view: ViewReport, recomputed: float | None) -> tuple[object, ...]:
    done = view.strategy != "none"
    out = f"+{view.rows_inserted:,} -{view.rows_deleted:,}" if done else None
    # A recomputed view reads its inputs whole, so there are no changed rows to count.
    rows_in = view.rows_in if view.strategy in ("incremental", "affected") else None
    strategy = "failed" if view.problem is not None else view.strategy
    return (name, strategy, view.reason.code, rows_in, out, view.seconds if done else None, recomputed)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
