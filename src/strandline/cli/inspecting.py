"""``strandline status``, ``verify`` and ``history``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strandline.cli.context import Context
from strandline.cli.help import examples
from strandline.cli.options import AsJson, Views
from strandline.cli.outcome import fail_unless, reported
from strandline.cli.output import grouped, moment, print_json, print_table, problems
from strandline.cli.profiling import print_profile
from strandline.cli.progress import progress
from strandline.sources.postgres.lsn import format_lsn

if TYPE_CHECKING:
    from strandline.catalog import HistoryEntry, Json
    from strandline.engine.session import DataFrame
    from strandline.propagate.status import BaseViewStatus, LogStatus, SourceStatus, Status, ViewStatus
    from strandline.propagate.verify import Verification

SAMPLE = 5
"""Rows shown of those that differ."""


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        "status", epilog=examples("strandline status  # views, sources, pending files", "strandline status --json")
    )(status)
    app.command(
        "verify",
        epilog=examples(
            "strandline verify  # compare every view with its recomputation",
            "strandline verify revenue orders  # these two",
            "strandline verify --against-source  # compare copies with the source tables",
        ),
    )(verify)
    app.command(
        "history",
        epilog=examples(
            "strandline history revenue  # its last steps",
            "strandline history revenue --json",
            "strandline history --profile  # where the seconds of the last refresh went",
            "strandline history --profile 3f0c2a  # of the one whose id begins so",
        ),
    )(history)


def status(context: typer.Context, as_json: AsJson = False) -> None:
    """Show where every view and source stands. Spark is not started."""
    settings: Context = context.obj
    with reported(as_json=as_json):
        with settings.warehouse() as warehouse:
            found = warehouse.status()
        if as_json:
            print_json(found.to_dict())
        else:
            _print_status(found)


def verify(
    context: typer.Context,
    views: Views = None,
    against_source: Annotated[
        bool,
        typer.Option("--against-source", help="Compare the copies of source tables that the views read, instead."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare views with their recomputation.

    Each view's query is run as written, over the inputs that the newest state shows. With --against-source, copies of
    source tables are compared with the tables themselves.
    """
    from strandline.propagate.progress import Event

    settings: Context = context.obj
    with reported(as_json=as_json):
        verified: list[Verification] = []
        with settings.warehouse() as warehouse, progress(as_json=as_json)("preparing to verify") as watcher:
            unfilled: list[str] = []
            if against_source:
                names = warehouse.copies(*views or ())
            elif views:
                names = views
            else:
                names, unfilled = _filled(warehouse.status())
            for place, name in enumerate(names):
                began = time.monotonic()
                watcher(Event("started", "verify", name, place, len(names)))
                found = warehouse.verify_source(name) if against_source else warehouse.verify(name)
                verified.append(found)
                seconds = time.monotonic() - began
                watcher(Event("done", "verify", name, place, len(names), seconds, _outcome(found)))
            samples = [] if as_json else [sample for one in verified if not one.ok for sample in _samples(one)]
        ok = all(one.ok for one in verified)
        if as_json:
            print_json({"ok": ok, "views": [one.to_dict() for one in verified]})
        else:
            _print_verified(verified, unfilled, samples)
        fail_unless(ok)


def history(
    context: typer.Context,
    view: Annotated[
        str,
        typer.Argument(metavar="VIEW", help="The name of a view; with --profile, how the id of a refresh begins."),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many steps to show.")] = 50,
    profile: Annotated[
        bool, typer.Option("--profile", help="Show where the seconds of the last refresh went, or of the one named.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the steps that refreshed a view, newest first, each with the seconds predicted for it and those it took."""
    settings: Context = context.obj
    if not view and not profile:
        raise typer.BadParameter("name a view, or ask for the --profile of a refresh.")
    with reported(as_json=as_json):
        if profile:
            with settings.warehouse() as warehouse:
                found = warehouse.profile(view)
            print_json(found.to_dict()) if as_json else print_profile(found)
            return
        with settings.warehouse() as warehouse:
            steps = [_step(view, entry) for entry in warehouse.history(view, limit)]
        if as_json:
            print_json({"view": view, "steps": steps})
        elif not steps:
            typer.echo(f"{view} has not been refreshed yet.")
        else:
            _print_history(steps)


def _print_status(found: Status) -> None:
    if found.state is None:
        typer.echo("Nothing is published yet.")
    else:
        typer.echo(f"State {found.state}, published at {moment(found.published_at)} UTC.")
    if found.costs["costs"] != "fixed":
        typer.echo(f"Costs: {found.costs['costs']}.")
    if found.views:
        typer.echo("")
        scheduled = ["schedule"] if any(view.schedule for view in found.views) else []
        columns = ("view", "state#", "transactions behind", "last refresh", "at (UTC)", "seconds#", *scheduled)
        print_table(columns, (_view_row(view)[: len(columns)] for view in found.views))
    if found.sources:
        typer.echo("")
        print_table(("source table", "position", "seen", "note"), map(_source_row, found.sources))
    if found.logs:
        typer.echo("")
        print_table(("source", "captured up to", "kept for us there"), map(_log_row, found.logs))
    if found.base_views:
        typer.echo("")
        print_table(("base view", "over", "algorithm", "rows#"), map(_base_view_row, found.base_views))
    notes = problems({view.name: view.problem for view in found.views})
    notes += grouped({leaf.leaf: leaf.problem for leaf in found.sources})
    notes += [f"{log.source}: {log.problem or log.warning}" for log in found.logs if log.problem or log.warning]
    notes += [f"not applied yet: {pending}; `strandline refresh` applies it" for pending in found.pending]
    notes += found.notes
    if found.unfinished is not None:
        notes.append(f"refresh {found.unfinished[:8]} is not finished; `strandline refresh` takes it up again")
    if not found.views and not found.pending:
        notes.append("There are no views yet. Put a CREATE MATERIALIZED VIEW into views/, then `strandline refresh`.")
    for note in notes:
        typer.echo(f"\n{note}" if note is notes[0] else note)


def _view_row(view: ViewStatus) -> tuple[object, ...]:
    last = None if view.strategy is None else f"{view.strategy} ({view.reason})"
    return (view.name, view.state, _behind(view), last, moment(view.refreshed_at), view.seconds, view.schedule)


def _behind(view: ViewStatus) -> str:
    """Fresh, or how far the view is behind which leaf."""
    if view.state is None:
        return "not filled yet"
    behind = {leaf: count for leaf, count in view.behind.items() if count != 0}
    shown = [f"{'unknown' if count is None else format(count, ',')} of {leaf}" for leaf, count in behind.items()]
    return ", ".join(shown) if shown else "fresh"


def _source_row(leaf: SourceStatus) -> tuple[object, ...]:
    return (leaf.leaf, _position(leaf.position), _position(leaf.seen), leaf.note)


def _base_view_row(view: BaseViewStatus) -> tuple[object, ...]:
    return (view.name, ", ".join(view.reads), view.algorithm, view.rows)


def _position(position: Json) -> str:
    if position is None:
        return "unknown"
    if isinstance(position, dict) and "version" in position:
        return f"version {position['version']}"
    if isinstance(position, dict) and "dump" in position:
        return f"dump {position['dump']}"
    if isinstance(position, dict) and isinstance(place := position.get("place"), int):
        return format_lsn(place)
    return str(position)


def _log_row(log: LogStatus) -> tuple[object, ...]:
    kept = None if log.retained_bytes is None else f"{log.retained_bytes / 1e6:,.1f} MB of its log"
    return (log.source, "nothing yet" if log.place is None else format_lsn(log.place), kept)


def _filled(found: Status) -> tuple[list[str], list[str]]:
    """The views that the newest state shows, and those that it does not."""
    shown = [view.name for view in found.views if view.state is not None]
    return shown, [view.name for view in found.views if view.state is None]


def _outcome(found: Verification) -> str:
    if found.ok and found.order_count:
        return f"equal but for {found.order_count:,} of {found.rows:,} rows that tie in an order"
    if found.ok:
        return f"equal, {found.rows:,} rows"
    return f"differs: {found.missing_count:,} rows missing, {found.extra_count:,} rows too many"


def _equal(found: Verification) -> str:
    if not found.ok:
        return "differs"
    return "equal but for rows that tie in an order" if found.order_count else "equal"


def _samples(found: Verification) -> list[str]:
    missing, extra = _rows(found.missing), _rows(found.extra)
    return [f"{found.view} lacks {row}" for row in missing] + [f"{found.view} should not have {row}" for row in extra]


def _rows(frame: DataFrame) -> list[str]:
    return [str(row.asDict()) for row in frame.limit(SAMPLE).collect()]


def _print_verified(verified: list[Verification], unfilled: list[str], samples: list[str]) -> None:
    if verified:
        columns = ("view", "state#", "outcome", "rows#", "missing#", "extra#")
        print_table(columns, ((v.view, v.state, _equal(v), v.rows, v.missing_count, v.extra_count) for v in verified))
    for sample in samples:
        typer.echo(sample)
    for name in unfilled:
        typer.echo(f"{name} is not filled yet; `strandline refresh` fills it.")
    if not verified and not unfilled:
        typer.echo("There are no views yet.")


def _step(view: str, entry: HistoryEntry) -> dict[str, Any]:
    step, plan = entry.step, entry.refresh.plan
    nodes: Any = plan["views"] if isinstance(plan, dict) else []
    node: dict[str, Any] = next((node for node in nodes if node["name"].lower() == view.lower()), {})
    return {
        "refresh": entry.refresh.id,
        "state": entry.refresh.state,
        "kind": step.kind,
        "status": step.status,
        "strategy": node.get("strategy"),
        "reason": node.get("reason"),
        "rows_in": step.result.get("rows_in"),
        "rows_inserted": step.result.get("inserted"),
        "rows_deleted": step.result.get("deleted"),
        "seconds": step.seconds,
        "predicted": step.result.get("predicted"),
        "mode": step.result.get("mode"),
        "measured": step.result.get("measured"),
        "left_to_spark": step.result.get("left_to_spark"),
        "started_at": step.started_at.isoformat() if step.started_at else None,
        "finished_at": step.finished_at.isoformat() if step.finished_at else None,
        "error": step.error,
    }


def _print_history(steps: list[dict[str, Any]]) -> None:
    columns = (
        "refresh",
        "state#",
        "step",
        "status",
        "strategy",
        "reason",
        "inserted#",
        "deleted#",
        "predicted#",
        "seconds#",
        "at (UTC)",
    )
    print_table(columns, map(_step_row, steps))
    # Steps come newest first: of those with the same error the first one met it, the others were skipped.
    failed = {(step["refresh"], step["error"]): step["kind"] for step in steps if step["error"] is not None}
    for (refresh, error), kind in failed.items():
        typer.echo(f"{refresh[:8]} {kind}: {error}")


def _step_row(step: dict[str, Any]) -> tuple[object, ...]:
    return (
        step["refresh"][:8],
        step["state"],
        step["kind"],
        step["status"],
        step["strategy"],
        (step["reason"] or {}).get("code"),
        step["rows_inserted"],
        step["rows_deleted"],
        step["predicted"],
        step["seconds"],
        moment(step["finished_at"] or step["started_at"]),
    )
