"""Penstock: exact continuous SQL over late, revised, replicated and bursty streams, in-process and on Spark."""

import logging

from penstock.errors import PenstockError
from penstock.flow import Flow
from penstock.flow.merging import merge
from penstock.flow.query import Query
from penstock.flow.run import Run
from penstock.flow.run_progress import RunProgress
from penstock.model.elements import Adjust, Insert, Punctuation, groupwise, joint, linear
from penstock.model.forms import Close, Open, Signed
from penstock.model.progress import bounded, ordered, per_source, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.snapshots import snapshot_at, snapshot_equivalent, snapshots
from penstock.model.tdb import TDB, equivalent, tdb
from penstock.model.time import END_OF_TIME
from penstock.runtime.polled import END, IDLE
from penstock.storage.retention import Retention

__version__ = "0.1.0"

# Quiet unless the program that uses it asks: logging.basicConfig(level="INFO").
logging.getLogger("penstock").addHandler(logging.NullHandler())

__all__ = [
    "END",
    "END_OF_TIME",
    "IDLE",
    "TDB",
    "Adjust",
    "Close",
    "Flow",
    "Insert",
    "Open",
    "PenstockError",
    "Punctuation",
    "Query",
    "Retention",
    "Run",
    "RunProgress",
    "Signed",
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
