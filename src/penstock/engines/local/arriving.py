"""What live sources give while a burst is under way, where the steepest part of the graph is to run first.

By most strategies what came together is run to its end before anything else is looked at, and what comes meanwhile
waits outside. Where parts are ranked (`runtime.chain`) that would let a burst go through flat parts while steeper ones
could let go of what is new. So between two elements of a burst what has come by then is let in, of every stream, and
waits at its entrance. Only the thread that reads the sources does that; streams whose components share the time of the
run by weights have turns of their own, and are let in when these come.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from penstock.engines.local.draining import MOST
from penstock.model.batch import Batch

if TYPE_CHECKING:
    from penstock.engines.local.hosting import Hosting


class Arriving:
    """The entrances of a graph that is run."""

    def __init__(self, host: Hosting[Any]) -> None:
        """Of the graph that somebody hosts."""
        self.host = host
        self.reader: int | None = None
        """The thread that reads the sources."""

    def burst(self, stream: str, batches: Sequence[Batch]) -> Iterator[None]:
        """Run several batches of a stream that came together, and what comes meanwhile."""
        for _ in self.host.burst(stream, batches):
            if self.host.graph.is_ranked and self.host.shares is None and threading.get_ident() == self.reader:
                self._let_in()
            yield

    def _let_in(self) -> None:
        host, pulling = self.host, self.host._pulling
        if pulling is None:
            return
        for name in list(host._reading):
            batches = pulling.more(name, Batch, MOST)
            if not batches:
                continue
            host.taken += len(batches)
            if host.silences.speaks_of(name):
                host.silences.came(name, host.clock())
            host.graph.admit(name, host._admitted(name.lower(), batches))
