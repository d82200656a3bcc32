"""``strandline maintain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.context import Context
from strandline.cli.help import examples
from strandline.cli.options import AsJson
from strandline.cli.outcome import fail_unless, reported
from strandline.cli.output import grouped, print_json, print_table
from strandline.cli.progress import progress

if TYPE_CHECKING:
    from strandline.upkeep.report import MaintainReport


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "maintain",
        epilog=examples(
            "strandline maintain  # compact tables, and remove what keep_states does not ask for",
            "strandline maintain --dry-run  # what that would be",
            "strandline maintain --wait 60 --json  # for a scheduler",
        ),
    )(maintain)


def maintain(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and do nothing.")] = False,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for a refresh to end.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Put the warehouse's own tables in order.

    Small files are compacted; states older than keep_states go, with all that only they needed. What was cut short
    before is carried to its end first.
    """
    settings: Context = context.obj
    interrupted = "Stopped. What is done is kept; `strandline maintain` goes on."
    with reported(as_json=as_json, interrupted=interrupted):
        with settings.warehouse() as warehouse, progress(as_json=as_json)("looking at the tables") as watcher:
            report = warehouse.maintain(dry_run=dry_run, wait=wait, watcher=watcher)
        if as_json:
            print_json(report.to_dict())
        else:
            print_maintained(report)
        fail_unless(report.ok)


def print_maintained(report: MaintainReport) -> None:
    """What upkeep did, for people."""
    if report.resumed is not None:
        typer.echo(f"What had been cut short ({report.resumed[:8]}) was carried to its end first.")
    touched = [(name, t) for name, t in report.tables.items() if t.files_before or t.bytes_freed != 0]
    if touched:
        columns = ("table", "small files#", "now#", "bytes freed#")
        print_table(columns, ((n, t.files_before or None, t.files or None, t.bytes_freed) for n, t in touched))
    for name, entries in report.log_entries.items():
        typer.echo(f"Log of {name}: {entries:,} entries {'would go' if report.dry_run else 'removed'}.")
    gone = [f"{count:,} {what}" for what, count in report.purged.items() if count]
    if gone:
        typer.echo(f"{'To be forgotten' if report.dry_run else 'Forgotten'}: {', '.join(gone)}.")
    for folder in report.leftovers:
        typer.echo(f"{'Would remove' if report.dry_run else 'Removed'} {folder}, which nobody needs.")
    for line in grouped(report.problems):
        typer.echo(line, err=True)
    typer.echo(f"{report.seconds:.2f} s; {report.bytes_freed:,} bytes {'would be ' if report.dry_run else ''}freed.")
