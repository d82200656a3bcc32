"""The second pass over a report: useless pairs become what they should have been (2.1.1)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from strandline.differential.records.reports import Delete, Insert, Report, Update


def without_insert_delete_pairs(reports: Iterable[Report]) -> Iterator[Report]:
    """A report of a set without inserts that come before the delete of their key.

    A receiver ignores an insert of a key that it holds, and then loses the record with the delete. Such a pair becomes
    an update, or nothing if the record has not changed. Pairs in the other order are harmless and stay.
    """
    working: list[Report | None] = []
    inserted: dict[Hashable, int] = {}
    for report in reports:
        if isinstance(report, Delete) and report.key in inserted:
            place = inserted.pop(report.key)
            insert = working[place]
            assert isinstance(insert, Insert)
            changed = insert.new != report.old
            working[place] = Update(report.key, insert.new, report.old) if changed else None
            continue
        if isinstance(report, Insert):
            inserted[report.key] = len(working)
        working.append(report)
    yield from (report for report in working if report is not None)
