"""Options and arguments that several commands have."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

Views = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer reads the annotation
    typer.Argument(metavar="VIEW", help="Names of views; none: all.", show_default=False),
]
