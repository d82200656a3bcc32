"""The unit-of-work log: which transactions of the sources the change log holds, in one order."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from strandline.catalog.damage import required
from strandline.catalog.database import Database
from strandline.catalog.jsontext import Json, digest
from strandline.catalog.lease import Lease, require_held
from strandline.catalog.leaves import leaf_names
from strandline.catalog.messages import unknown
from strandline.catalog.models import LeafRow, TransactionRow, WarehouseRow
from strandline.catalog.records import Transaction, TransactionRecord

LOOKED_UP_AT_ONCE = 500


class UnitOfWork:
    """The log. A transaction's csn orders it among all transactions of the warehouse."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, leaf: str, transactions: Iterable[Transaction], upto: Json, *, lease: Lease | None = None) -> int:
        """Log *transactions* in order, those that are not logged yet, and move the leaf to *upto*.

        Returns how many were new.
        """
        with self._database.writing() as session:
            if lease is not None:
                require_held(session, lease)
            return log_transactions(session, leaf, transactions, upto)

    def since(self, leaf: str, csn: int = 0) -> tuple[TransactionRecord, ...]:
        """The transactions of *leaf* after *csn*, in order."""
        with self._database.reading() as session:
            rows = session.scalars(
                select(TransactionRow)
                .where(TransactionRow.leaf == leaf, TransactionRow.csn > csn)
                .order_by(TransactionRow.csn)
            )
            return tuple(map(_record, rows))

    def between(self, leaf: str, after: int, upto: int) -> tuple[TransactionRecord, ...]:
        """The transactions of *leaf* whose place is from *after* on and before *upto*, in order."""
        with self._database.reading() as session:
            rows = session.scalars(
                select(TransactionRow)
                .where(TransactionRow.leaf == leaf, TransactionRow.place >= after, TransactionRow.place < upto)
                .order_by(TransactionRow.csn)
            )
            return tuple(map(_record, rows))

    def first(self, leaf: str, after: int, upto: int) -> TransactionRecord | None:
        """The first of the transactions that :meth:`between` gives."""
        with self._database.reading() as session:
            row = session.scalar(
                select(TransactionRow)
                .where(TransactionRow.leaf == leaf, TransactionRow.place >= after, TransactionRow.place < upto)
                .order_by(TransactionRow.csn)
                .limit(1)
            )
            return _record(row) if row else None

    def newest_csn(self) -> int:
        """The highest csn given out, 0 at the start."""
        with self._database.reading() as session:
            return required(session, WarehouseRow, 1).newest_csn

    def count(self) -> int:
        """How many transactions are in the log."""
        with self._database.reading() as session:
            return session.scalars(select(func.count()).select_from(TransactionRow)).one()


def log_transactions(session: Session, leaf: str, transactions: Iterable[Transaction], upto: Json) -> int:
    """Log transactions of a leaf in a database transaction that is under way; how many were new."""
    row = session.get(LeafRow, leaf)
    if row is None:
        raise unknown("leaf", leaf, leaf_names(session))
    row.position = upto
    warehouse = required(session, WarehouseRow, 1)
    fresh = _not_logged(session, leaf, transactions)
    if fresh:
        session.execute(
            insert(TransactionRow),
            [
                {
                    "csn": csn,
                    "leaf": leaf,
                    "position": one.position,
                    "position_digest": key,
                    "txid": one.txid,
                    "committed_at": one.committed_at,
                    "place": one.place,
                    "summary": dict(one.summary),
                }
                for csn, (key, one) in enumerate(fresh.items(), warehouse.newest_csn + 1)
            ],
        )
    warehouse.newest_csn += len(fresh)
    return len(fresh)


def _not_logged(session: Session, leaf: str, transactions: Iterable[Transaction]) -> dict[str, Transaction]:
    """Of *transactions* those whose position is new, by its digest, in order; of equal ones the first."""
    fresh: dict[str, Transaction] = {}
    for one in transactions:
        fresh.setdefault(digest(one.position), one)
    keys = list(fresh)
    for start in range(0, len(keys), LOOKED_UP_AT_ONCE):
        part = keys[start : start + LOOKED_UP_AT_ONCE]
        logged = session.scalars(
            select(TransactionRow.position_digest).where(
                TransactionRow.leaf == leaf, TransactionRow.position_digest.in_(part)
            )
        )
        for key in logged:
            del fresh[key]
    return fresh


def _record(row: TransactionRow) -> TransactionRecord:
    return TransactionRecord(row.csn, row.leaf, row.position, row.txid, row.committed_at, row.place, row.summary or {})
