"""Capturing without refreshing: what the logs of sources hold is taken in, so that they need not keep it.

Views that wait for their schedule, and stretches of a log that concern no view, must not make a source keep its log.
"""

from __future__ import annotations

from contextlib import suppress

from strandline.catalog import Lease
from strandline.errors import SourceError
from strandline.ingest.advance import take_in_copies
from strandline.ingest.capture import Captured
from strandline.ingest.copied import CopiedSource
from strandline.ingest.uncopied import UncopiedSource
from strandline.propagate.context import Context
from strandline.sources.protocol import Source


def capture(context: Context, lease: Lease) -> dict[str, Captured]:
    """Take in the logs that go on where they were left, by source; the others are left to a refresh."""
    taken = {}
    for source in context.sources.values():
        with suppress(SourceError):
            found = _captured(context, source, lease)
            if found is not None:
                taken[source.name] = found
    return taken


def _captured(context: Context, source: Source, lease: Lease) -> Captured | None:
    record = context.catalog.captures.get(source.name)
    if record is None or not isinstance(source, CopiedSource | UncopiedSource):
        return None
    if source.inner.health(record.place, record.details).lost is not None:
        return None
    if isinstance(source, UncopiedSource):
        return source.take_in((), lease)
    copies = [n for n in context.vdag.nodes.values() if n.copied and n.name.split(".", 1)[0] == source.name]
    return take_in_copies(context.catalog, source, copies, (), context.engine.storage_options, lease)
