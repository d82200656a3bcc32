"""``strandline diff``: what changed between two snapshots of a table."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from strandline.cli.context import Context
from strandline.cli.help import examples
from strandline.cli.interrupt import ending_processes
from strandline.cli.options import AsJson
from strandline.cli.outcome import reported
from strandline.cli.output import print_json, print_table

if TYPE_CHECKING:
    from strandline.differential.outcome import Differential
    from strandline.differential.snapshot import Snapshot
    from strandline.engine.session import Engine

SAMPLE = 10
"""Changed rows that are shown."""

_POSTGRES = re.compile(r"postgres:(?P<variable>\w+)/(?P<table>.+)|(?P<dsn>postgres(?:ql)?://[^#]+)#(?P<of>.+)")
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

Names = Optional[list[str]]  # noqa: UP045 - typer reads the annotation


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "diff",
        epilog=examples(
            "strandline diff monday.parquet tuesday.parquet --key id  # two dumps",
            "strandline diff lake/orders@v12 lake/orders --key id  # a Delta table then and now",
            "strandline diff dump.csv postgres:SHOP_DSN/public.orders  # a dump and the table it is of, by its own key",
            "strandline diff old/ new/ --bag --identify account,time  # rows without a key",
            "strandline diff old/ new/ --key id --output changes/ --json  # for programs",
        ),
    )(diff)


def diff(
    context: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The older snapshot.")],
    new: Annotated[
        str,
        typer.Argument(
            metavar="NEW",
            help="The newer one: a Parquet, CSV or JSON file or a folder of them, a Delta table, TABLE@vN for one of "
            "its versions, or postgres:VARIABLE/SCHEMA.TABLE with the connection string in an environment variable.",
        ),
    ],
    key: Annotated[Names, typer.Option("--key", metavar="COLUMNS", help="What tells rows apart: a,b.")] = None,
    bag: Annotated[bool, typer.Option("--bag", help="Rows have no key, and may be equal.")] = False,
    identify: Annotated[
        Names, typer.Option("--identify", metavar="COLUMNS", help="Of a bag: columns that few rows share.")
    ] = None,
    algorithm: Annotated[
        str, typer.Option("--algorithm", help="auto, or sm, ph, smc1, smc2, phc1, phc2, phc, window.")
    ] = "auto",
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="What it may hold, as 512m.")] = "1g",
    bits: Annotated[int, typer.Option("--hash-bits", help="64 or 128, for algorithms that compare hashes.")] = 64,
    output: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Option("--output", metavar="DIR", help="Write the changed rows there, as Parquet.", show_default=False),
    ] = None,
    keep: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--keep", metavar="DIR", help="Keep NEW for the next run, and use OLD as kept by the last."),
    ] = None,
    unreadable: Annotated[
        str, typer.Option("--unreadable", help="What to do with rows that cannot be read: fail or set-aside.")
    ] = "fail",
    as_json: AsJson = False,
) -> None:
    """Show what changed between two snapshots of a table.

    Which rows were inserted, deleted and updated. No project is needed. Small snapshots, and large ones in the order of
    their key, are compared without Spark.
    """
    from strandline.differential.cost import ALGORITHMS

    if algorithm not in ("auto", *ALGORITHMS):
        raise typer.BadParameter(f"{algorithm}: there are auto, {', '.join(ALGORITHMS)}.", param_hint="--algorithm")
    if unreadable not in ("fail", "set-aside"):
        raise typer.BadParameter(f"{unreadable}: there are fail, set-aside.", param_hint="--unreadable")
    if bits not in (64, 128):
        raise typer.BadParameter(f"{bits}: there are 64, 128.", param_hint="--hash-bits")
    if key and (bag or identify):
        raise typer.BadParameter("rows have a --key, or are a --bag with --identify.", param_hint="--key")
    settings: Context = context.obj
    wanted = _split(key) or _split(identify)
    is_bag = bag or bool(identify)
    with reported(as_json=as_json), ExitStack() as stack:
        from strandline.differential.compare import compare
        from strandline.engine.session import Engine

        engine = Engine(settings.spark, remote=settings.remote)
        stack.callback(engine.close)
        stack.enter_context(ending_processes())
        say = stack.enter_context(_saying(as_json))
        before, primary = _snapshot(old, engine, stack, say)
        after, primary = _snapshot(new, engine, stack, say, primary)
        found = compare(
            engine,
            before,
            after,
            key=wanted or (None if is_bag else primary),
            bag=is_bag,
            algorithm=algorithm,  # type: ignore[arg-type]
            memory=_bytes(memory),
            bits=bits,  # type: ignore[arg-type]
            kept=keep,
            output=output,
            unreadable=unreadable,  # type: ignore[arg-type]
            say=say,
        )
        stack.callback(found.close)
        shown = None if as_json else found.sample(SAMPLE)
    if as_json:
        print_json({**found.to_dict(), "output": output})
    else:
        _print(found, shown or [], output, keep)


def _split(names: Names) -> list[str]:
    return [part.strip() for name in names or () for part in name.split(",") if part.strip()]


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise typer.BadParameter(f"{text} is no size; write for example 512m or 2g.", param_hint="--memory")
    return int(found[1]) * _FACTORS[found[2].lower()]


def _snapshot(
    text: str, engine: Engine, stack: ExitStack, say: Callable[[str], None], primary: tuple[str, ...] | None = None
) -> tuple[Snapshot, tuple[str, ...] | None]:
    """What *text* names, and the primary key if it is a table that has one; a database's table is read first."""
    from strandline.differential.snapshot import snapshot

    found = _POSTGRES.fullmatch(text)
    if found is None:
        return snapshot(text), primary
    from dataclasses import replace

    from strandline.sources.postgres.address import Address
    from strandline.sources.postgres.dump import dump

    address = Address(dsn=found["dsn"], dsn_env=found["variable"])
    table = found["table"] or found["of"]
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-dump-"))) / "rows"
    say(f"reading {table}")
    key = dump(engine, address, table, str(folder))
    return replace(snapshot(str(folder)), name=table), primary or key or None


@contextmanager
def _saying(as_json: bool) -> Iterator[Callable[[str], None]]:
    """Shows what is under way: in a terminal while it lasts, elsewhere as lines, beside JSON not at all."""
    import sys

    if as_json:
        yield lambda text: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("looking at the snapshots") as status:
            yield status.update
    else:
        yield lambda text: typer.echo(text, err=True)


def _print(found: Differential, rows: list[dict[str, Any]], output: str | None, keep: Path | None) -> None:
    counts = found.counts
    columns = found.columns
    for what, names in (("added", columns.added), ("dropped", columns.dropped)):
        if names:
            typer.echo(f"Columns {what}, and not compared: {', '.join(names)}.")
    for name, before, after in columns.retyped:
        typer.echo(f"Column {name} was {before} and is {after}.")
    for side, unreadable in found.unreadable.items():
        if unreadable.count:
            typer.echo(f"{unreadable.count:,} rows of the {side} snapshot cannot be read and were set aside, as:")
            for text in unreadable.first:
                typer.echo(f"  {text[:200]}")
    if rows:
        marks = {"insert": "+", "delete": "-", "update_preimage": "<", "update_postimage": ">"}
        shown = [(marks[row["_change_type"]], *(_value(row[name]) for name in columns.schema.names)) for row in rows]
        print_table(("", *columns.schema.names), shown)
        images = 2 * counts.updated if found.old_rows_known else counts.updated
        left = counts.inserted + counts.deleted + images - len(rows)
        if left:
            typer.echo(f"... and {left:,} more rows (--output DIR writes all of them).")
    typer.echo(
        f"{counts.inserted:,} inserted, {counts.deleted:,} deleted, {counts.updated:,} updated; "
        f"{found.rows[0]:,} rows before, {found.rows[1]:,} after."
    )
    typer.echo(f"Compared with {found.algorithm}: {found.reason}.")
    if found.error:
        typer.echo(
            f"Hashes of {found.bits} bits were compared: a change was missed with a probability below "
            f"{found.error:.1e}; with one such comparison a day, one is to be expected in {1 / found.error:.1e} days."
        )
    read = f"{_size(found.bytes_read)} read in {found.seconds:.2f} s"
    typer.echo(f"{read}; the changes are in {output}." if output else f"{read}.")
    if found.kept is not None:
        typer.echo(f"The new snapshot is kept in {keep}: {_size(found.kept.bytes)}.")
    elif keep is not None:
        typer.echo(f"Nothing is kept in {keep}: {found.algorithm} keeps nothing here for the next run.")


def _value(value: Any) -> str:
    """A value of a row, such that different ones look different."""
    if value is None:
        return "NULL"
    plain = isinstance(value, str) and value not in ("", "NULL") and value == value.strip()
    return value if plain else repr(value) if isinstance(value, str) else str(value)


def _size(size: float) -> str:
    for unit, factor in (("MB", 1e6), ("KB", 1e3)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size:.0f} bytes"
