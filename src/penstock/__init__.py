"""Penstock: exact continuous SQL over late, revised, replicated and bursty streams, in-process and on Spark.

Names are imported when they are first asked for: Spark's workers import this package for what is below it, and wait for
no more than they need.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.errors import PenstockError
    from penstock.flow import Flow
    from penstock.flow.conflating import conflate
    from penstock.flow.merging import merge
    from penstock.flow.query import Query
    from penstock.flow.run import Run
    from penstock.flow.run_progress import RunProgress
    from penstock.io.channel import channel
    from penstock.io.connections import listen, socket
    from penstock.io.followed import follow
    from penstock.io.kafka import kafka, kafka_sink
    from penstock.io.published import publish
    from penstock.io.redis_streams import redis, redis_sink
    from penstock.model.elements import Adjust, Insert, Punctuation, groupwise, joint, linear
    from penstock.model.estimated import estimated
    from penstock.model.forms import Close, Open, Signed
    from penstock.model.progress import bounded, ordered, per_source, punctuated
    from penstock.model.properties import StreamProperties
    from penstock.model.snapshots import snapshot_at, snapshot_equivalent, snapshots
    from penstock.model.tdb import TDB, equivalent, tdb
    from penstock.model.time import END_OF_TIME
    from penstock.model.timer import timer
    from penstock.model.timestamps import external, internal, latent
    from penstock.runtime.polled import END, IDLE
    from penstock.runtime.strategies import dfs
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
    "channel",
    "conflate",
    "dfs",
    "equivalent",
    "estimated",
    "external",
    "follow",
    "groupwise",
    "internal",
    "joint",
    "kafka",
    "kafka_sink",
    "latent",
    "linear",
    "listen",
    "merge",
    "ordered",
    "per_source",
    "publish",
    "punctuated",
    "redis",
    "redis_sink",
    "snapshot_at",
    "snapshot_equivalent",
    "snapshots",
    "socket",
    "tdb",
    "timer",
]

_MODULES = {
    "penstock.errors": ("PenstockError",),
    "penstock.flow": ("Flow",),
    "penstock.flow.conflating": ("conflate",),
    "penstock.flow.merging": ("merge",),
    "penstock.flow.query": ("Query",),
    "penstock.flow.run": ("Run",),
    "penstock.flow.run_progress": ("RunProgress",),
    "penstock.io.channel": ("channel",),
    "penstock.io.connections": ("listen", "socket"),
    "penstock.io.followed": ("follow",),
    "penstock.io.published": ("publish",),
    "penstock.io.kafka": ("kafka", "kafka_sink"),
    "penstock.io.redis_streams": ("redis", "redis_sink"),
    "penstock.model.elements": ("Adjust", "Insert", "Punctuation", "groupwise", "joint", "linear"),
    "penstock.model.forms": ("Close", "Open", "Signed"),
    "penstock.model.estimated": ("estimated",),
    "penstock.model.progress": ("bounded", "ordered", "per_source", "punctuated"),
    "penstock.model.properties": ("StreamProperties",),
    "penstock.model.snapshots": ("snapshot_at", "snapshot_equivalent", "snapshots"),
    "penstock.model.tdb": ("TDB", "equivalent", "tdb"),
    "penstock.model.time": ("END_OF_TIME",),
    "penstock.model.timer": ("timer",),
    "penstock.model.timestamps": ("external", "internal", "latent"),
    "penstock.runtime.polled": ("END", "IDLE"),
    "penstock.runtime.strategies": ("dfs",),
    "penstock.storage.retention": ("Retention",),
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from its module."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted({*globals(), *__all__})
