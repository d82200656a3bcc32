"""``strandline demo``: the main job end to end on a small shop."""

from __future__ import annotations

from contextlib import AbstractContextManager
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
        ),
    )(demo)


def demo(
    context: typer.Context,
    folder: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--folder", metavar="DIR", help="Where to work; absent or empty, and kept.", show_default=False),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the temporary folder.")] = False,
) -> None:
    """See it at work on a small shop.

    Views over two lakes of Delta tables are kept up to date while the tables change, and then verified. It takes a
    minute or two.
    """
    settings: Context = context.obj
    with reported(interrupted="Stopped, with everything that the demo had started."):
        from strandline.demo.run import run

        def opened(project: Path) -> AbstractContextManager[Warehouse]:
            return replace(settings, project=project).warehouse()

        outcome = run(console(), progress(), opened, folder=folder, keep=keep)
        fail_unless(outcome.ok)
