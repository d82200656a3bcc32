"""How a command ends: exit status, and errors for people or for programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from strandline.cli.output import print_json
from strandline.errors import StrandlineError

FAILED = 1
INTERRUPTED = 130


@contextmanager
def reported(*, as_json: bool = False, interrupted: str = "Stopped.") -> Iterator[None]:
    """Within, an error ends the command with its message and status 1, and Ctrl-C with *interrupted* and 130."""
    try:
        yield
    except StrandlineError as error:
        if as_json:
            print_json({"error": error.to_dict()})
        else:
            typer.echo(str(error), err=True)
        raise typer.Exit(FAILED) from error
    except KeyboardInterrupt as error:
        typer.echo(interrupted, err=True)
        raise typer.Exit(INTERRUPTED) from error


def fail_unless(ok: bool) -> None:
    """End with status 1 if what was reported is no success."""
    if not ok:
        raise typer.Exit(FAILED)
