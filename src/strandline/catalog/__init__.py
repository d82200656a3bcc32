"""The control catalog: what the warehouse knows of its sources, views, refreshes and published states."""

from strandline.catalog.catalog import Catalog
from strandline.catalog.changes import (
    AddView,
    DropView,
    RedefineView,
    ReplaceView,
    ViewChange,
    ViewChanges,
    ViewValues,
)
from strandline.catalog.damage import damaged, understanding
from strandline.catalog.jsontext import Json
from strandline.catalog.lease import Lease
from strandline.catalog.purging import Outlived
from strandline.catalog.records import (
    CaptureRecord,
    HistoryEntry,
    LeafRecord,
    LoggedTable,
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

__all__ = [
    "AddView",
    "CaptureRecord",
    "Catalog",
    "DropView",
    "HistoryEntry",
    "Json",
    "LeafRecord",
    "Lease",
    "LoggedTable",
    "NewVersion",
    "Outlived",
    "RedefineView",
    "RefreshRecord",
    "RefreshStatus",
    "ReplaceView",
    "SourceRecord",
    "StateEntry",
    "StateRecord",
    "StepRecord",
    "StepStatus",
    "Transaction",
    "TransactionRecord",
    "VersionRecord",
    "ViewChange",
    "ViewChanges",
    "ViewKind",
    "ViewRecord",
    "ViewValues",
    "damaged",
    "understanding",
]
