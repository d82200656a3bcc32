"""``strandline demo``: the main job end to end on a small shop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from strandline.cli.context import Context
from strandline.cli.help import examples
from strandline.cli.outcome import fail_unless, reported
from strandline.cli.output import console
from strandline.cli.progress import progress

if TYPE_CHECKING:
    from strandline.warehouse import Warehouse


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "demo",
        epilog=examples(
            "strandline demo  # in a temporary folder that is removed at the end",
            "strandline demo --folder shop-demo  # and keep what it made there",
            "strandline demo --folder shop-demo --serve  # start the PostgreSQL and the writers of that one again",
        ),
    )(demo)


def demo(
    context: typer.Context,
    folder: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--folder", metavar="DIR", help="Where to work; absent or empty, and kept.", show_default=False),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the temporary folder.")] = False,
    serving: Annotated[
        bool, typer.Option("--serve", help="Only start the shop of a demo that was kept in DIR, until Ctrl-C.")
    ] = False,
) -> None:
    """See it at work on a small shop.

    Views over a PostgreSQL database and a lake of Delta tables are kept up to date while writers change both, and are
    then verified. PostgreSQL is started for it, and stopped at the end. It takes a minute or two.
    """
    settings: Context = context.obj
    if serving and folder is None:
        raise typer.BadParameter("--serve needs --folder, with a demo that was kept there.")
    with reported(interrupted="Stopped, with everything that the demo had started."), _ended_like_ctrl_c():
        from strandline.demo.server import require_installed

        require_installed()
        from strandline.demo.run import run, serve

        if serving and folder is not None:
            fail_unless(serve(console(), folder))
            return

        def opened(project: Path) -> AbstractContextManager[Warehouse]:
            return replace(settings, project=project).warehouse()

        outcome = run(console(), progress(), opened, folder=folder, keep=keep)
        fail_unless(outcome.ok)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Within, a signal that asks to end does what Ctrl-C does: all that was started is stopped first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
