"""The control catalog: what the warehouse knows of its sources, views, refreshes and published states."""

from strandline.catalog.catalog import Catalog
from strandline.catalog.jsontext import Json
from strandline.catalog.lease import Lease
from strandline.catalog.records import (
    HistoryEntry,
    LeafRecord,
    NewVersion,
    RefreshRecord,
    RefreshStatus,
    SourceRecord,
    StateEntry,
    StateRecord,
    StepRecord,
    StepStatus,
    Transaction,
    TransactionRecord,
    VersionRecord,
    ViewKind,
    ViewRecord,
)
from strandline.catalog.views import ViewChanges

__all__ = [
    "Catalog",
    "HistoryEntry",
    "Json",
    "LeafRecord",
    "Lease",
    "NewVersion",
    "RefreshRecord",
    "RefreshStatus",
    "SourceRecord",
    "StateEntry",
    "StateRecord",
    "StepRecord",
    "StepStatus",
    "Transaction",
    "TransactionRecord",
    "VersionRecord",
    "ViewChanges",
    "ViewKind",
    "ViewRecord",
]
