"""``strandline init``: a new project folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from strandline.cli.help import examples
from strandline.cli.outcome import reported

_NEXT_STEPS = """\
Made the project {name} in {folder}:

  strandline.yml   its name, where view tables are kept, how Spark is reached
  sources/         one file a source
  views/           one file a view

What to do next:

  1. Declare where your tables are, in {folder}/sources/lake.yml. Each Delta table below the path is then lake.<folder>:

       kind: delta
       path: /data/lake

  2. Define a view, in {folder}/views/revenue.sql:

       CREATE MATERIALIZED VIEW revenue AS
       SELECT category, count(*) AS orders, sum(amount) AS amount
       FROM lake.orders
       GROUP BY category;

  3. Fill it, and bring it up to date whenever the source has changed:

       cd {folder}
       strandline refresh
       strandline status"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("init", epilog=examples("strandline init shop  # a project in the new folder shop"))(init)


def init(
    name: Annotated[Path, typer.Argument(metavar="NAME", help="The folder to make; it must be absent or empty.")],
) -> None:
    """Make a project folder."""
    with reported():
        from strandline.project.folder import Project

        _refuse_project(name)
        project = Project.create(name)
        typer.echo(_NEXT_STEPS.format(name=project.config.name, folder=name))


def _refuse_project(folder: Path) -> None:
    from strandline.errors import ProjectError
    from strandline.project.folder import FILE

    if (folder / FILE).exists():
        raise ProjectError(
            "PROJECT_EXISTS", f"{folder} is a Strandline project already; use it, or choose a new folder."
        )
    if folder.exists() and not folder.is_dir():
        raise ProjectError("FOLDER_NOT_EMPTY", f"{folder} is a file; choose an empty or a new folder for a project.")
