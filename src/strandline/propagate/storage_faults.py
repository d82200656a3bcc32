"""Faults of the places where tables are kept, told as what they are: a full disk, a lost file, a Spark that died.

Spark, Arrow and delta-rs each have words of their own for them; what is wrong and what to do is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.errors import StoreError, StrandlineError
from strandline.propagate.context import Context
from strandline.propagate.faults import message, spark_died
from strandline.propagate.vdag import Vdag

_FULL = re.compile(r"No space left on device|Disk quota exceeded|File too large|disk is full", re.IGNORECASE)
_GONE = re.compile(
    r"FILE_NOT_FOUND|FILE_NOT_EXIST|PATH_NOT_FOUND|TIME_TRAVEL_BEYOND|FileNotFound|FAILED_READ_FILE|"
    r"NoSuchTable|No such file|NOT_A_DELTA_TABLE|MISSING_DELTA_TABLE|PATH_DOES_NOT_EXIST|VERSIONS_NOT_CONTIGUOUS|"
    r"TRUNCATED_TRANSACTION_LOG|VERSION_NOT_FOUND|not a Delta table|is not an existing",
    re.IGNORECASE,
)


def told_of(context: Context, error: Exception) -> str:
    """What went wrong in a step, in a line."""
    first = message(error)
    if isinstance(error, StrandlineError):
        return first
    text = f"{type(error).__name__}: {error}"
    if _FULL.search(text):
        return f"DISK_FULL: no space is left at {context.root}; make space there, and refresh again: {first[:300]}"
    if _GONE.search(text):
        return f"INPUT_GONE: {lost(context, text)}: {first[:300]}"
    if spark_died(error):
        return f"SPARK_GONE: the Spark process ended in the middle of the step; refresh again: {first[:300]}"
    return first


@contextmanager
def told_as_fault(context: Context) -> Iterator[None]:
    """Within, a lost file is an error that names its table."""
    try:
        yield
    except StrandlineError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if not _GONE.search(text):
            raise
        raise StoreError("FILES_GONE", f"{lost(context, text)}.") from error


def lost(context: Context, text: str) -> str:
    """Which table a message about a lost file speaks of, and what to do."""
    for node in context.vdag.nodes.values():
        if node.record.location in text:
            if node.copied or not node.hidden:
                return f"a file of the table of {node.name} was removed; make it anew: {_full(node.name)}"
            views = ", ".join(readers(context.vdag, node.name))
            return f"a file of {node.name}, a hidden part of {views}, was removed; make it anew: {_full(views)}"
    for leaf in context.catalog.leaves.all():
        if leaf.location and leaf.location.rstrip("/") in text:
            return f"a file of the source table {leaf.name} was removed; put it back there, and refresh again"
    if "/deltas/" in text:
        return "a stored delta of this refresh was removed; refresh again"
    return "a file of an input was removed; refresh again, in full if it stays"


def readers(vdag: Vdag, name: str) -> list[str]:
    """The views that a hidden node is a part of."""
    found: dict[str, None] = {}
    for above in vdag.dependants(name):
        found |= dict.fromkeys(readers(vdag, above) if vdag.nodes[above].hidden else [above])
    return list(found)


def _full(names: str) -> str:
    return f"`strandline refresh --full {names.replace(', ', ' ')}`"
