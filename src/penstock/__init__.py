"""Penstock: exact continuous SQL over late, revised, replicated and bursty streams, in-process and on Spark."""

from penstock.errors import PenstockError
from penstock.flow import Flow
from penstock.flow.merging import merge
from penstock.model.elements import Adjust, Insert, Punctuation, groupwise, joint, linear
from penstock.model.progress import bounded, ordered, per_source, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.snapshots import snapshot_at, snapshot_equivalent, snapshots
from penstock.model.tdb import TDB, equivalent, tdb
from penstock.model.time import END_OF_TIME
from penstock.storage.retention import Retention

__version__ = "0.1.0"

__all__ = [
    "END_OF_TIME",
    "TDB",
    "Adjust",
    "Flow",
    "Insert",
    "PenstockError",
    "Punctuation",
    "Retention",
    "StreamProperties",
    "bounded",
    "equivalent",
    "groupwise",
    "joint",
    "linear",
    "merge",
    "ordered",
    "per_source",
    "punctuated",
    "snapshot_at",
    "snapshot_equivalent",
    "snapshots",
    "tdb",
]
