"""``strandline simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.help import examples
from strandline.cli.options import AsJson
from strandline.cli.outcome import fail_unless, reported
from strandline.cli.output import print_json, print_table

if TYPE_CHECKING:
    from strandline.integrate.replay import Replayed, Step


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "simulate",
        epilog=examples(
            "strandline simulate trace.json  # every event, query, answer and state, and the level reached",
            "strandline simulate trace.json --algorithm sweep  # the same events through another algorithm",
            "strandline simulate trace.json --json",
        ),
    )(simulate)


def simulate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of traces.", show_default=False)],
    algorithm: Annotated[
        str, typer.Option("--algorithm", metavar="NAME", help="Run this one instead, and expect nothing.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Run traces of updates, queries and answers through a maintenance algorithm.

    A trace may say what it expects; the command ends with status 1 if something else happens. No project is needed,
    and Spark is not started.
    """
    from strandline.integrate.replay import replay
    from strandline.integrate.trace import read_traces, through

    with reported(as_json=as_json):
        traces = read_traces(file)
        replayed = [replay(through(trace, algorithm) if algorithm else trace) for trace in traces]
        ok = not any(each.differences for each in replayed)
        if as_json:
            print_json({"ok": ok, "traces": [each.to_dict() for each in replayed]})
        else:
            for place, each in enumerate(replayed):
                typer.echo("\n" if place else "", nl=False)
                _print(each)
        fail_unless(ok)


def _print(replayed: Replayed) -> None:
    from strandline.integrate.notation import show_view

    view = replayed.trace.view
    joined = ", ".join(f"{scan.alias}({', '.join(f.name for f in scan.fields)})" for scan in view.scans)
    typer.echo(f"{replayed.trace.name}: {replayed.trace.algorithm}")
    typer.echo(f"V = {show_view(view.plan)} over {joined}\n")
    held = list(dict.fromkeys(name for step in replayed.steps for name in step.held))
    rows = [_row(number, step, held) for number, step in enumerate(replayed.steps, start=1)]
    print_table(("#", "event", "what happens", "open", *held, "view"), rows)
    verdict, traffic = replayed.verdict, replayed.traffic
    typer.echo(f"\nlevel reached: {verdict.reached or 'none'} (holds: {', '.join(verdict.holds) or 'nothing'})")
    for witness in dict.fromkeys(verdict.witnesses.values()):
        levels = [level for level, found in verdict.witnesses.items() if found == witness]
        typer.echo(f"  not {', '.join(levels)}: {witness}")
    typer.echo(f"messages: {traffic.queries} queries, {traffic.answers} answers")
    for difference in replayed.differences:
        typer.echo(f"DIFFERS: {difference}")


def _row(number: int, step: Step, held: list[str]) -> list[object]:
    from strandline.integrate.notation import show_bag

    waiting = "{" + ",".join(f"{n}" for n in step.waiting) + "}"
    bags = [show_bag(step.held[name]) if name in step.held else "" for name in held]
    shown = [*step.shown[:-1], step.view]
    return [number, str(step.event), step.happened, waiting, *bags, " ".join(show_bag(rows) for rows in shown)]
