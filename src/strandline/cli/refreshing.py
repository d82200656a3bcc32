"""``strandline plan``, ``explain`` and ``refresh``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.context import Context
from strandline.cli.help import examples
from strandline.cli.maintaining import print_maintained
from strandline.cli.options import AsJson, Views
from strandline.cli.outcome import fail_unless, reported
from strandline.cli.output import grouped, print_json, print_table, problems
from strandline.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strandline.propagate.plan import NodePlan, RefreshPlan
    from strandline.propagate.report import RefreshReport, ViewReport

Wait = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for another refresh to end.")
]
Full = Annotated[bool, typer.Option("--full", help="Recompute the named views, or all, from scratch.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        "plan",
        epilog=examples(
            "strandline plan  # what a refresh of everything would do now",
            "strandline plan revenue  # of one view and what it reads",
            "strandline plan --json  # for programs",
        ),
    )(plan)
    app.command(
        "refresh",
        epilog=examples(
            "strandline refresh  # bring all views up to date",
            "strandline refresh revenue  # one view and what it reads",
            "strandline refresh revenue --full  # recompute it from scratch",
            "strandline refresh --wait 60  # wait up to a minute for another refresh to end",
            "strandline refresh --restart  # give up a refresh that was cut short, and plan anew",
        ),
    )(refresh)
    app.command(
        "resume",
        epilog=examples(
            "strandline resume  # carry to its end what was cut short, and begin nothing new",
            "strandline resume --json  # the report of that refresh; null if there was nothing to resume",
        ),
    )(resume)
    app.command(
        "explain",
        epilog=examples(
            "strandline explain  # the whole plan: strategies, estimates, steps, SQL",
            "strandline explain revenue  # for one view and what it reads",
        ),
    )(explain)


def plan(context: typer.Context, views: Views = None, full: Full = False, as_json: AsJson = False) -> None:
    """Show how views would be refreshed now.

    Nothing is changed, and Spark is not started.
    """
    settings: Context = context.obj
    with reported(as_json=as_json):
        with settings.warehouse() as warehouse:
            made = warehouse.plan(*views or (), full=full)
        if as_json:
            print_json(made.to_dict())
        else:
            _print_plan(made)


def explain(context: typer.Context, views: Views = None, full: Full = False, as_json: AsJson = False) -> None:
    """Show the whole plan of a refresh.

    Strategies with their reasons, estimates, steps and SQL. Nothing is changed, and Spark is not started.
    """
    settings: Context = context.obj
    with reported(as_json=as_json):
        with settings.warehouse() as warehouse:
            made = warehouse.plan(*views or (), full=full)
        if as_json:
            print_json(made.to_dict())
        else:
            typer.echo(made.explain())


def refresh(
    context: typer.Context,
    views: Views = None,
    full: Full = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Let an edited file rebuild a view declared INCREMENTAL STRICT.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Give up a refresh that was cut short, instead of carrying it to its end.")
    ] = False,
    wait: Wait = 0,
    as_json: AsJson = False,
) -> None:
    """Bring views up to date, with what they read.

    A new state is published at the end. A refresh that was cut short before is carried to its end first.
    """
    settings: Context = context.obj
    interrupted = "Stopped. What is done is kept; `strandline refresh` takes the refresh up again."
    with reported(as_json=as_json, interrupted=interrupted):
        with settings.warehouse() as warehouse, progress(as_json=as_json)("preparing the refresh") as watcher:
            options = {"full": full, "accept": accept, "restart": restart}
            report = warehouse.refresh(*views or (), **options, wait=wait, watcher=watcher)
        if as_json:
            print_json(report.to_dict())
        else:
            _print_report(report)
        fail_unless(report.ok)


def resume(context: typer.Context, wait: Wait = 0, as_json: AsJson = False) -> None:
    """Carry to its end what was cut short.

    A refresh goes on by the very plan it had, from the steps that were running; nothing new is begun.
    """
    from strandline.propagate.report import RefreshReport

    settings: Context = context.obj
    interrupted = "Stopped. What is done is kept; `strandline resume` goes on."
    with reported(as_json=as_json, interrupted=interrupted):
        with settings.warehouse() as warehouse, progress(as_json=as_json)("taking up what was cut short") as watcher:
            report = warehouse.resume(wait=wait, watcher=watcher)
        if as_json:
            print_json(report.to_dict() if report is not None else None)
        elif report is None:
            typer.echo("Nothing was cut short.")
        elif isinstance(report, RefreshReport):
            _print_report(report)
        else:
            print_maintained(report)
        fail_unless(report is None or report.ok)


def _print_plan(made: RefreshPlan) -> None:
    for pending in made.pending:
        typer.echo(f"to be applied first: {pending}")
    for note in made.notes:
        typer.echo(f"note: {note}")
    if not made.nodes:
        typer.echo("There are no views yet." if not made.pending else "Run `strandline refresh` to apply them.")
        return
    columns = ("view", "strategy", "reason", "changed inputs", "changed rows#", "cost#", "cost of recomputing#")
    print_table(columns, map(_plan_row, made.nodes))
    work = f"{len(made.steps)} steps, about {made.predicted:.1f} s of work (costs: {made.costs})"
    steps = work if made.steps else "Nothing to do: no input has changed"
    typer.echo(f"{steps}; the newest state is {made.base_state if made.base_state is not None else 'none yet'}.")


def _plan_row(node: NodePlan) -> tuple[object, ...]:
    name = f"{node.name} (hidden)" if node.hidden else node.name
    strategy = "keeps its last state" if node.blocked else node.strategy
    reason = str(node.reason) if node.blocked else node.reason.code
    return (name, strategy, reason, ", ".join(node.changed), node.estimated_rows, node.cost, node.cost_full)


def _print_report(report: RefreshReport) -> None:
    from strandline.propagate.plan import counted

    if report.resumed is not None:
        typer.echo(f"Refresh {report.resumed[:8]}, which had been cut short, was carried to its end first.")
    for source, captured in report.captured.items():
        if captured.transactions:
            rows = [f"{table} {_counts(counts)}" for table, counts in captured.rows.items()]
            typer.echo(f"Captured from {source}: {counted(captured.transactions, 'transaction')}; {', '.join(rows)}.")
    for name, told in report.asked.items():
        if told["updates"]:
            typer.echo(
                f"Asked for {name} ({told['algorithm']}): {told['queries']:,} queries, "
                f"{told['fetched_rows']:,} rows and {told['fetched_bytes']:,} bytes fetched."
            )
    shown = {**{f"{name} (hidden)": view for name, view in report.hidden.items()}, **report.views}
    if not shown:
        typer.echo("There are no views yet.")
        return
    columns = ("view", "strategy", "reason", "rows in#", "inserted#", "deleted#", "seconds#")
    print_table(columns, (_report_row(name, view) for name, view in shown.items()))
    for line in grouped({name: view.how for name, view in (*report.hidden.items(), *report.views.items())}):
        typer.echo(f"{line}.")
    for line in problems({name: view.problem for name, view in report.views.items()}):
        typer.echo(line, err=True)
    state = "nothing is published yet" if report.state is None else f"the newest state is {report.state}"
    typer.echo(f"{report.seconds:.2f} s; {state}.")


def _counts(counts: Mapping[str, int]) -> str:
    return " ".join(f"{count:,} {what}" for what, count in counts.items())


def _report_row(name: str, view: ViewReport) -> tuple[object, ...]:
    strategy = view.strategy if view.problem is None else "held" if view.held else "failed"
    return (name, strategy, view.reason.code, view.rows_in, view.rows_inserted, view.rows_deleted, view.seconds)
