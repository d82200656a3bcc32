"""The application: global options, and the commands in the order that help lists them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer

from strandline.cli import comparing, demo, init, inspecting, maintaining, refreshing, simulating, sources, watching
from strandline.cli.context import Context
from strandline.cli.help import examples

app = typer.Typer(
    name="strandline",
    help="Materialized views on Apache Spark, kept up to date incrementally while their sources change.",
    epilog=examples(
        "strandline demo  # see it at work on a small shop",
        "strandline init shop  # make a project",
        "strandline refresh  # bring all views up to date",
        "strandline status  # where every view and source stands",
        "strandline --project shop plan  # run in another folder",
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"strandline {version('strandline')}")
        raise typer.Exit


@app.callback()
def strandline(
    context: typer.Context,
    project: Annotated[Path, typer.Option("--project", metavar="DIR", help="The project folder.")] = Path("."),
    remote: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Option("--remote", metavar="URL", help="A Spark Connect server, sc://host:port, instead of our own."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Global options."""
    context.obj = replace(context.obj or Context(), project=project, remote=remote)


init.add_to(app)
demo.add_to(app)
refreshing.add_to(app)
watching.add_to(app)
inspecting.add_to(app)
maintaining.add_to(app)
sources.add_to(app)
simulating.add_to(app)
comparing.add_to(app)
