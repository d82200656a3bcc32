"""``strandline watch``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from strandline.cli.context import Context
from strandline.cli.help import examples
from strandline.cli.options import AsJson, Views
from strandline.cli.outcome import reported

if TYPE_CHECKING:
    from strandline.warehouse import Warehouse
    from strandline.watch.log import Log
    from strandline.watch.schedule import Pace
    from strandline.watch.stopping import Stop

NOT_NOW = ("CATALOG_UNAVAILABLE", "CATALOG_BUSY")
"""Codes of a catalog that may be there a little later."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "watch",
        epilog=examples(
            "strandline watch  # refresh by schedule, or as changes arrive, until stopped",
            "strandline watch revenue --max-lag 10  # one view and what it reads, 10 s behind at most",
            "strandline watch --json --metrics-port 9464  # as a service",
        ),
    )(watch)


def watch(
    context: typer.Context,
    views: Views = None,
    poll: Annotated[
        float, typer.Option("--poll", metavar="SECONDS", min=0.1, help="How often sources are looked at.")
    ] = 5,
    max_lag: Annotated[
        float, typer.Option("--max-lag", metavar="SECONDS", help="How old a change may be when it is published.")
    ] = 30,
    maintain_every: Annotated[
        str, typer.Option("--maintain-every", metavar="INTERVAL", help="How often upkeep is done; `never` for not.")
    ] = "1 day",
    metrics_port: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation
        typer.Option("--metrics-port", min=0, max=65535, help="Serve /metrics and /healthz there; 0: any free port."),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", metavar="ADDRESS", help="The address to serve them at.")
    ] = "0.0.0.0",
    seconds: Annotated[
        Optional[float],  # noqa: UP045 - typer reads the annotation
        typer.Option("--for", metavar="SECONDS", min=0, help="Stop by itself after so long."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep views up to date: by their schedules, or as changes arrive.

    Runs until SIGTERM or Ctrl-C, and then ends at the next step, with status 0; a second signal ends it at once.
    """
    from strandline.watch.log import Log
    from strandline.watch.stopping import Stop

    settings: Context = context.obj
    pace = _pace(poll, max_lag, maintain_every)
    stop, log = Stop(), Log(as_json=as_json)
    with reported(as_json=as_json), stop.on_signals(), ExitStack() as stack:
        _watch(settings, stack, stop, log, pace, views or [], seconds, metrics_host, metrics_port)
    log.tell("stopped")


def _watch(
    settings: Context,
    stack: ExitStack,
    stop: Stop,
    log: Log,
    pace: Pace,
    views: list[str],
    seconds: float | None,
    host: str,
    port: int | None,
) -> None:
    from strandline.watch.health import Health
    from strandline.watch.loop import Watch
    from strandline.watch.metrics import Metrics
    from strandline.watch.server import serving

    health, metrics = Health(), Metrics()
    if port is not None:
        port = stack.enter_context(serving(host, port, metrics.registry, health))
    warehouse = _opened(settings, stack, stop, log, pace)
    if warehouse is None:
        return
    if views:
        warehouse.plan(*views)  # a name that is not known is told now
    if seconds is not None:
        stop.after(seconds)
    log.tell("started", views=views or None, poll=pace.poll, max_lag=pace.max_lag, metrics_port=port)
    Watch(warehouse, views, pace, stop, log, metrics, health).run()


def _opened(settings: Context, stack: ExitStack, stop: Stop, log: Log, pace: Pace) -> Warehouse | None:
    """The warehouse, once its catalog answers; None if it is time to stop before that."""
    from strandline.errors import CatalogError

    tries = 0
    while stop.requested is None:
        try:
            return stack.enter_context(settings.warehouse())
        except CatalogError as error:
            if error.code not in NOT_NOW:
                raise
            tries += 1
            if tries == 1:
                log.tell("trouble", what="catalog", code=error.code, reason=error.message)
        stop.wait(min(pace.after_failures(tries), pace.max_lag))
    return None


def _pace(poll: float, max_lag: float, maintain_every: str) -> Pace:
    from strandline.project.config import KEEP_STATES, duration
    from strandline.watch.schedule import Pace

    if poll >= max_lag:
        raise typer.BadParameter(
            "it must be more than --poll, which is how late a change may be noticed.", param_hint="--max-lag"
        )
    if maintain_every == "never":
        return Pace(poll, max_lag, maintain_every=None)
    if not KEEP_STATES.fullmatch(maintain_every) or not duration(maintain_every):
        raise typer.BadParameter(
            "write it as a number and a unit, for example 1 day, or never.", param_hint="--maintain-every"
        )
    return Pace(poll, max_lag, maintain_every=duration(maintain_every).total_seconds())
