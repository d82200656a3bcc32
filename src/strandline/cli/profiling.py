"""The profile of a refresh as a terminal shows it: a line for each step, then what each kind of work took of it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from strandline.cli.output import moment, print_table

if TYPE_CHECKING:
    from strandline.propagate.profile import Profile, StepProfile, TableRead

BAR = 30
"""Columns of a bar for everything."""

NAME = 22
"""Columns of the name of a step."""

MOST_READ = 8
"""Tables of which it is told how much of them was read, those of which it was most."""

MEANING = {
    "starting": "starting Spark",
    "planning": "planning",
    "building": "building plans",
    "driver": "Spark, driver",
    "jobs": "Spark, jobs",
    "spark": "Spark",
    "seeking": "seeking rows",
    "columns": "columns, here",
    "commit": "commits",
    "log": "Delta logs",
    "files": "stored deltas",
    "catalog": "catalog",
    "publish": "publishing",
    "metrics": "profile",
    "other": "other",
}


def print_profile(found: Profile) -> None:
    """Print it, so that it can be read in 100 columns."""
    state = "" if found.state is None else f", state {found.state}"
    began = moment(found.started_at.isoformat())
    typer.echo(f"Refresh {found.refresh[:8]}{state}, begun at {began} UTC: {found.seconds:.2f} s\n")
    columns = ("at#", "took#", "step", "build#", "driver#", "jobs#", "commit#", "rest#", "files#", "read#", "shuffle#")
    print_table(columns, map(_row, found.steps))
    typer.echo("")
    print_table(("", "seconds#", "%#", "", "in steps#"), _parts(found))
    _print_waiting(found)
    _print_jobs(found)
    _print_read(found)


def _row(step: StepProfile) -> tuple[object, ...]:
    spent = step.seconds
    shown = [spent.get("building", 0.0), spent.get("driver", 0.0), spent.get("jobs", 0.0), spent.get("commit", 0.0)]
    read = step.measured.get("bytes_read")
    return (
        _seconds(step.start),
        _seconds(step.elapsed),
        _short(f"{step.kind} {step.subject}".strip()),
        *(map(_seconds, shown) if spent else [None] * 4),
        _seconds(max(0.0, step.elapsed - sum(shown)) if spent else None),
        None if step.files is None else f"{step.files[0]:,}/{step.files[1]:,}",
        None if not read else size(read),
        None if not step.measured.get("shuffle_bytes") else size(step.measured["shuffle_bytes"]),
    )


def _parts(found: Profile) -> list[tuple[object, ...]]:
    in_steps = found.in_steps()
    rows: list[tuple[object, ...]] = []
    for part, spent in sorted(found.parts.items(), key=lambda pair: -pair[1]):
        share = spent / found.seconds if found.seconds else 0.0
        rows.append((MEANING[part], spent, f"{100 * share:.1f}", "█" * round(BAR * share), in_steps.get(part)))
    return [*rows, ("all", found.seconds, "100.0", "", sum(in_steps.values()))]


def _print_waiting(found: Profile) -> None:
    waited = [(step.waited_for_steps, step.waited_for_turn, step) for step in found.steps if step.start is not None]
    if waited:
        turn = sum(turn for _, turn, _ in waited)
        typer.echo(f"\nSteps that could begin waited {turn:.2f} s for their turn, all together.")


def _print_jobs(found: Profile) -> None:
    told = [step.measured for step in found.steps if step.measured.get("jobs") is not None]
    if not told:
        return
    jobs, tasks, executor, processor = (
        sum(measured.get(name) or 0 for measured in told)
        for name in ("jobs", "tasks", "executor_seconds", "processor_seconds")
    )
    typer.echo(f"{jobs:,} jobs, {tasks:,} tasks, which ran {executor:.2f} s, {processor:.2f} s of that on a processor.")


def _print_read(found: Profile) -> None:
    """Of which tables most was read: files of how many, in all scans, and what of these holds touched keys."""
    read = [(step, table) for step in found.steps for table in step.read or () if table.of_files is not None]
    most = sorted(read, key=lambda pair: -pair[1].bytes)[:MOST_READ]
    if most:
        typer.echo("\nMost was read of these tables:\n")
        columns = ("table", "by", "scans#", "files#", "of#", "touched#", "read#", "needed#", "rows#")
        print_table(columns, [_read_row(step, table) for step, table in most])


def _read_row(step: StepProfile, table: TableRead) -> tuple[object, ...]:
    return (
        _short(table.table),
        _short(f"{step.kind} {step.subject}"),
        table.scans,
        table.files,
        table.of_files,
        table.holding,
        size(table.bytes),
        None if table.holding_bytes is None else size(table.holding_bytes),
        table.rows,
    )


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


def _seconds(value: float | None) -> str:
    """Seconds in at most five characters, up to a thousand of them."""
    return "" if value is None else f"{value:.2f}" if value < 99.995 else f"{value:.1f}"


def size(count: int) -> str:
    """A number of bytes in few characters."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
