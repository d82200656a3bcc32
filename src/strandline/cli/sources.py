"""``strandline source check``, ``source drop`` and ``source accept``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from strandline.cli.context import Context
from strandline.cli.help import examples
from strandline.cli.options import AsJson
from strandline.cli.outcome import fail_unless, reported
from strandline.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from strandline.sources.protocol import Finding

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a source.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Look at sources, accept their dumps, and remove them.", no_args_is_help=True)
    group.command(
        "check",
        epilog=examples(
            "strandline source check  # all sources: what they must be and have, and the SQL for a DBA",
            "strandline source check shop",
        ),
    )(check)
    group.command(
        "drop", epilog=examples("strandline source drop shop  # forget it; its slot and publication are dropped too")
    )(drop)
    group.command(
        "accept",
        epilog=examples("strandline source accept dump parts  # the newest dump is right, however small it is"),
    )(accept)
    app.add_typer(group, name="source")


def check(
    context: typer.Context,
    name: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Argument(metavar="[NAME]", help="The name of a source; without it, all."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that sources are as they must be.

    For what is not, the statement is printed that makes it so. Nothing is changed, and Spark is started for databases
    behind JDBC only.
    """
    settings: Context = context.obj
    with reported(as_json=as_json):
        with settings.warehouse() as warehouse:
            names = [name] if name is not None else warehouse.sources()
            found = {each: warehouse.check_source(each) for each in names}
        if as_json:
            print_json({each: [vars(finding) for finding in findings] for each, findings in found.items()})
        else:
            _print_findings(found)
        fail_unless(all(finding.ok for findings in found.values() for finding in findings))


def drop(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Remove a source that no view reads, with what it keeps for this warehouse."""
    settings: Context = context.obj
    with reported(as_json=as_json):
        with settings.warehouse() as warehouse:
            warehouse.remove_source(name)
        if as_json:
            print_json({"dropped": name})
        else:
            typer.echo(f"Source {name} is removed.")


def accept(
    context: typer.Context,
    name: Name,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table of it.")],
    as_json: AsJson = False,
) -> None:
    """Let the newest dump of a table be taken, though it has far fewer rows than the one before."""
    settings: Context = context.obj
    with reported(as_json=as_json):
        with settings.warehouse() as warehouse:
            dump = warehouse.accept_dump(name, table)
        if as_json:
            print_json({"source": name, "table": table, "accepted": dump})
        else:
            typer.echo(f"Dump {dump} of {name}.{table} is accepted; the next refresh takes it.")


def _print_findings(found: Mapping[str, Sequence[Finding]]) -> None:
    if not found:
        typer.echo("There are no sources yet. Put a file into sources/, or use add_source.")
        return
    rows = [(name, "ok" if one.ok else "NOT OK", one.what) for name, findings in found.items() for one in findings]
    print_table(("source", "", "finding"), rows)
    fixes = [one.fix for findings in found.values() for one in findings if not one.ok and one.fix]
    if fixes:
        typer.echo("\nTo do, as a superuser or the owner of the tables:\n")
        for fix in fixes:
            typer.echo(f"  {fix}")
