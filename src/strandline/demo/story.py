"""What the demonstration prints."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Literal

from rich.console import Console
from rich.table import Table

from strandline.demo.rounds import Money, Outcome, Pulse, Refreshed
from strandline.demo.scene import DSN_FILE, DSN_VARIABLE, Scene
from strandline.demo.shop import FIRST_BALANCE
from strandline.ingest.capture import Captured
from strandline.propagate.report import RefreshReport, ViewReport

WIDEST = 110
"""Columns of running text."""

WIDE_ENOUGH = 92
"""Columns that the widest table takes."""

MAY_SHRINK = ("what it is", "in states", "reason")
"""Columns of tables that give way where there is not room for all."""

VIEWS = Path(__file__).parent / "project" / "views"


class Story:
    """Tells on *console* what happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._chapter = 0

    def say(self, *paragraphs: str, hang: int = 3) -> None:
        """Running text, whose second and later lines are indented by *hang*."""
        for text in paragraphs:
            for line in wrap(
                text,
                min(self._console.width, WIDEST),
                initial_indent="   ",
                subsequent_indent=" " * hang,
                break_long_words=False,
                break_on_hyphens=False,
            ) or [""]:
                self.show(line)

    def show(self, *lines: str) -> None:
        """Lines as they are, however long: what somebody may copy."""
        for line in lines:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def heading(self, text: str) -> None:
        """A line that stands out."""
        self.show("")
        self._console.print(text, style="bold", markup=False, highlight=False, soft_wrap=True)

    def chapter(self, title: str, lines: Iterable[str] = ()) -> None:
        """A numbered heading, and what happened."""
        self._chapter += 1
        self.heading(f"{self._chapter}. {title}")
        self.say(*lines)

    def introduction(self) -> None:
        """What this is."""
        self.show(
            "Strandline keeps materialized views up to date while others change the tables they read.",
            "This shows it on a small shop, in about a minute on an idle machine.",
        )

    def opening(self, scene: Scene) -> None:
        """The sources, and who writes to them."""
        shop, lake = scene.shop, scene.lake.rows()
        self.chapter("A shop opens: a PostgreSQL database, and a lake of Delta tables")
        self.show(
            f"   PostgreSQL {shop.version}, started for this demo on 127.0.0.1, port {scene.server.port}:",
            f"     shop.customers   {shop.customers:>7,} rows",
            f"     shop.orders      {shop.orders:>7,} rows",
            f"     shop.accounts    {shop.accounts:>7,} rows, with {everything(scene).amount:,} in them",
            "   Delta tables without a change feed, as somebody else might write them:",
            f"     lake.products    {lake['products']:>7,} rows",
            f"     lake.line_items  {lake['line_items']:>7,} rows",
        )
        self.say(
            "From now on three writers change the database, and wait for nobody. A clerk takes orders and changes "
            "their status. Two tellers transfer money between accounts: one transaction takes it here and puts it "
            "there, and some are rolled back in between. The total never changes, so whoever reads another total has "
            "seen half a transfer.",
        )

    def filling(self, views: int) -> None:
        """The first refresh begins."""
        self.chapter(
            f"The first refresh copies the database and fills {views} views, while the writers write",
            [f"Each view is one CREATE MATERIALIZED VIEW ... AS SELECT ..., in {VIEWS}"],
        )

    def filled(
        self, report: RefreshReport, comments: Mapping[str, str], copied: Mapping[str, float], seconds: float
    ) -> None:
        """The first refresh."""
        self.say("copied: " + ", ".join(f"{name} in {took:.1f} s" for name, took in copied.items()))
        self._captured(report, "captured while that went on, and added to the copies")
        rows = [(name, v.rows_inserted, v.seconds, comments.get(name)) for name, v in report.views.items()]
        self._table(("view", "rows#", "seconds#", "what it is"), rows)
        self._problems(report)
        self.say(
            f"{seconds:.1f} s, most of it Spark starting and warming up. All views are published together, as state "
            f"{report.state}."
        )
        self.show("", "   How to read the tables to come:")
        self.say(
            "strategy   none: nothing to do; incremental: from the changes alone; affected: the groups, keys or "
            "partitions that changed are computed anew; full: the whole view is",
            "reason     why that strategy was taken",
            "in, out    rows that changed in what the view reads; rows put into and taken out of its table",
            "seconds    for this view in this refresh",
            "recompute  seconds for its query as an ordinary Spark job that reads the same data and writes a Delta "
            "table, right after the refresh. Strandline reads and writes small tables by itself, so that even a full "
            "refresh can be quicker than such a job",
            hang=14,
        )

    def refreshed(self, round: Refreshed) -> None:
        """One round."""
        report = round.report
        self._captured(report, "captured from PostgreSQL's log")
        if all(view.strategy == "none" for view in report.views.values()):
            reasons = ", ".join(sorted({view.reason.code for view in report.views.values()}))
            self.say(
                f"refresh: all {len(report.views)} views none ({reasons}); {round.seconds:.2f} s, no Spark job, "
                f"still state {report.state}"
            )
        else:
            columns = ("view", "strategy", "reason", "in#", "out#", "seconds#", "recompute#")
            self._table(columns, [_row(name, v, round.recomputed.get(name)) for name, v in report.views.items()])
            self.say(
                f"refresh: {round.seconds:.1f} s, taking in the changes included, with steps side by side; recomputing "
                f"the same views, one after another: {sum(round.recomputed.values()):.1f} s; published as state "
                f"{report.state}"
            )
        self._problems(report)

    def pulsing(self, count: int) -> None:
        """The total alone is about to be refreshed."""
        self.chapter(
            f"Only the view total is refreshed, {count} times in a row, while the tellers go on",
            ["A refresh takes names of views. What else is captured with it waits for its views."],
        )

    def pulsed(self, pulses: Sequence[Pulse]) -> None:
        """What the total was each time."""
        rows = []
        for one in pulses:
            captured = sum((c.transactions for c in one.report.captured.values()), 0)
            view = one.report.views["total"]
            rows.append((one.report.state, captured, view.strategy, view.rows_in, one.seconds, _shown(one.money)))
        columns = ("state#", "transactions#", "strategy", "in#", "seconds#", "what total shows")
        self._table(columns, rows)
        for one in pulses:
            self._problems(one.report)

    def verifying(self) -> None:
        """The checks begin."""
        self.chapter(
            "All is quiet, and everything is checked",
            ["Each view is compared, as a bag of rows, with its query run in full over the same state:"],
        )

    def checked(self, outcome: Outcome) -> None:
        """What the checks found."""
        rows = [(v.view, v.rows, v.missing_count, v.extra_count, _verdict(v.ok)) for v in outcome.verified]
        self._table(("view", "rows#", "missing#", "extra#", "outcome"), rows)
        self.say("The views that read the database alone, with what PostgreSQL answers to the same SQL:")
        self._table(
            ("view", "rows#", "rows there#", "outcome"),
            [(one.view, one.rows, one.there, _verdict(one.equal)) for one in outcome.compared],
        )
        self.say(f"The view total, read in each of the {len(outcome.states)} states that were published:")
        found: dict[Money, list[str]] = {}
        for state, money in outcome.states.items():
            found.setdefault(money, []).append(str(state))
        self._table(
            ("what total shows", "in states", "outcome"),
            [(_shown(m), ", ".join(states), _verdict(m == outcome.expected)) for m, states in found.items()],
        )

    def summary(self, outcome: Outcome, seconds: float) -> None:
        """What came of it all."""
        measured = [one for one in outcome.rounds if one.recomputed]
        refreshing = sum(one.seconds for one in measured)
        recomputing = sum(sum(one.recomputed.values()) for one in measured)
        captured = sum(c.transactions for report in outcome.reports for c in report.captured.values())
        held = sum(money == outcome.expected for money in outcome.states.values())
        self.heading("What came of it" if outcome.ok else "What came of it: NOT all as it should be")
        self.say(
            f"The writers committed {outcome.committed:,} transactions and rolled back {outcome.rolled_back:,}. "
            f"{captured:,} were captured; those before came with the copies.",
            f"{sum(v.ok for v in outcome.verified)} of {len(outcome.verified)} views equal their recomputation, "
            f"{sum(one.equal for one in outcome.compared)} of {len(outcome.compared)} equal PostgreSQL's own answer.",
            f"{held} of {len(outcome.states)} published states show all the money"
            f"{', and none half a transfer.' if outcome.constant else ': half a transfer was seen.'}",
            f"{len(measured)} refreshes of all views took {refreshing:.1f} s, ordinary Spark jobs for the same "
            f"{recomputing:.1f} s.",
        )
        if recomputing < refreshing:
            self.say("On this little data recomputing is quicker: every Spark job has its fixed cost.")
        self.say("Recomputing grows with the tables, a refresh mostly with the changes.")
        if outcome.problem is not None:
            self.say(f"A writer did not work to the end: {outcome.problem}")
        self.say(f"The demo took {seconds:.0f} s. Everything that it started is stopped.")

    def next_steps(self, folder: Path | None) -> None:
        """What to try next."""
        command = _command()
        self.heading("What to try next")
        if folder is None:
            self.show(f"   {command} demo --folder shop-demo", "      the same, and keep the project to try things on")
        else:
            self.show(
                f"   The project is in {folder / 'project'}. Its PostgreSQL is stopped; in a terminal of its own",
                f"   {command} demo --folder {folder} --serve",
                "      starts it again, with its writers, and says how to follow the changes from another terminal",
                f"   {command} --project {folder / 'project'} history total",
                "      what was done to a view, refresh by refresh; this needs no PostgreSQL",
            )
        self.show(
            f"   {command} init NAME",
            "      make a project of your own; it says what to put where",
            "   docs/tutorial-postgres.md",
            "      views over a PostgreSQL of your own, step by step",
            f"   {command} -h",
            "      all commands",
        )

    def serving(self, place: Path, scene: Scene) -> None:
        """A kept demonstration is at work again."""
        with_project = f"{_command()} --project {place / 'project'}"
        self.show(
            f"PostgreSQL {scene.shop.version} runs on 127.0.0.1, port {scene.server.port}, and the writers write, "
            "until you press Ctrl-C here.",
            "In another terminal:",
            f'   export {DSN_VARIABLE}="$(cat {place / DSN_FILE})"',
            f"   {with_project} status",
            f"   {with_project} refresh",
            f"   {with_project} verify",
            f'   {scene.server.program("psql")} "${DSN_VARIABLE}"',
            "      look into the database and change it, for example: UPDATE shop.customers SET region = 'south';",
        )

    def _captured(self, report: RefreshReport, what: str) -> None:
        for source, taken in report.captured.items():
            rows = [
                f"{source}.{table} {', '.join(f'{count:,} {done}' for done, count in sorted(counts.items()))}"
                for table, counts in sorted(taken.rows.items())
            ]
            self.say(f"{what}: {'; '.join([_transactions(taken), *rows])}")

    def _problems(self, report: RefreshReport) -> None:
        for name, view in report.views.items():
            if view.problem is not None:
                self.say(f"{name} keeps its last state: {view.problem}")

    def _table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        apart = 2 if self._console.width >= WIDE_ENOUGH else 1
        table = Table(box=None, padding=(0, apart, 0, 0), header_style="bold", pad_edge=False)
        table.add_column("", width=1)
        for name in columns:
            justify: Literal["left", "right"] = "right" if name.endswith("#") else "left"
            table.add_column(name.removesuffix("#"), justify=justify, no_wrap=name not in MAY_SHRINK)
        for row in rows:
            table.add_row("", *(_cell(value) for value in row))
        self._console.print(table)


def everything(scene: Scene) -> Money:
    """All the money there is."""
    return Money(scene.shop.accounts, scene.shop.accounts * FIRST_BALANCE)


def _command() -> str:
    """How this program is called from where the user is."""
    if shutil.which("strandline") is not None:
        return "strandline"
    called = sys.argv[0]
    return called if Path(called).name == "strandline" else f"{sys.executable} -m strandline"


def _shown(money: Money) -> str:
    return f"{money.amount:,} in {money.accounts:,} accounts"


def _transactions(captured: Captured) -> str:
    return "1 transaction" if captured.transactions == 1 else f"{captured.transactions:,} transactions"


def _verdict(ok: bool) -> str:
    return "equal" if ok else "DIFFERS"


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
