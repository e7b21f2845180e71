"""What hosts a query graph in-process: sources in, elements out, late rows and dead letters kept apart.

Several streams are read in turn, a batch from each; those that may block, if the caller names them, beside the others,
so that they hold nobody up (`runtime.pulling` says what order that gives). At the end of each of them a closing
punctuation is implied, so that a stream that has ended holds back no other, and every window up to the last row's is
put out.

While sources are `run`, what comes of one element is handed on in portions as it is made, so a bound that closes very
many windows never has them all in memory. Whoever touches the graph meanwhile has the element run to its end first, and
whoever feeds it by hand is given all that comes of an item at once. Several threads may feed it.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from penstock.engines.local.arriving import Arriving
from penstock.engines.local.clock import Clock, checked_now, wall_clock
from penstock.engines.local.demand import Demand
from penstock.engines.local.draining import MOST, Draining
from penstock.engines.local.entrances import Entrances
from penstock.engines.local.opening import (
    Given,
    Item,
    Opener,
    at_position,
    check_item,
    checked_ahead,
    failed,
    let_go,
    opened,
    promise_of,
)
from penstock.engines.local.silences import Silences
from penstock.engines.local.stamps import Stamps
from penstock.errors import PenstockError, StreamError
from penstock.model.accounts import Counts, DeadLimit
from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter, conform_row, without_time
from penstock.model.elements import Punctuation, linear
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.plan.catalog import Catalog
from penstock.plan.closing import closing_bound
from penstock.plan.nodes import Node
from penstock.runtime.arcs import Outlet
from penstock.runtime.builder import Builder
from penstock.runtime.gate import Gate
from penstock.runtime.graph_statistics import GraphStatistics, statistics_of
from penstock.runtime.lane import at_rest, lane_of
from penstock.runtime.lane_books import Lane
from penstock.runtime.polled import Poll
from penstock.runtime.positions import Handed
from penstock.runtime.pulling import Exhausted, Leisure, Pulling
from penstock.runtime.recent_rates import RecentRates
from penstock.runtime.sampling import Clocks
from penstock.runtime.shares import Shares
from penstock.runtime.side_outputs import Sides

NOT_DECLARED = "punctuation of some groups that the stream has not declared: progress=pk.punctuated(…, per=[…])"
Out = TypeVar("Out")
"""What comes out: elements, or elements with the query that they are of."""
MANY = 1 << 16
"""So many items are read ahead of live sources whose rows may be passed over."""
MUCH = 1000
"""A run that is stopped leaves an element of which more rows than this have come out as it is."""


class Hosting(Entrances, Generic[Out]):
    """A running query graph with its counts."""

    side: Sides

    def __init__(self, catalog: Catalog, *, bounds_in_place: bool = True) -> None:
        """The graph is for others to make; `bounds_in_place` as of a `Builder`."""
        self.builder = Builder(catalog, bounds_in_place=bounds_in_place)
        self.lanes: dict[str, Lane] = {}
        self.streams = []
        self.settled = Counts()
        """Where rows had gone when somebody last looked between two elements."""
        self.taken = 0
        """How many items of sources `run` has taken."""
        self.begun = threading.Event()
        """Set when `run` has opened its sources, or will not."""
        self._reads: Counter[str] = Counter()
        """Per stream, by its name in lower case, how many rows were read."""
        self._pulling: Pulling[Given] | None = None
        self._reading: dict[str, Iterator[Given]] = {}
        """Streams that `run` reads, and that have not ended."""
        self.positions: dict[str, Any] = {}
        """Per stream, in lower case, whose source can be gone on with: where it is after all that was taken of it."""
        self.clock = wall_clock
        self.silences = Silences(catalog.streams)
        """What the clock says of streams while nothing comes."""
        self.demand = Demand(lambda: self.graph, self._results)
        """Which idle streams are asked."""
        self.stamps = Stamps(catalog.streams)
        """What gives rows their times, where they bring none."""
        self.stopwatch: Callable[[], float] = time.perf_counter
        """Seconds, for measuring how long something took."""
        self.clocks = Clocks(time.thread_time, self._elapsed)
        """By which the graph is measured: the processor time of the thread, and the stopwatch."""
        self.shares: Shares | None = None
        """Where components of the graph share the time by weight: what each has left."""
        self._ahead: dict[str, int] = {}
        """How far streams that may block are read ahead."""
        self._finishing: bool | None = None
        self._gate = Gate()
        self._under_way: Iterator[None] | None = None
        self._draining: Draining[Out] = Draining(self)
        self._rates = RecentRates()
        self._arriving = Arriving(self)

    @property
    @abstractmethod
    def label(self) -> str:
        """What is run, in errors."""

    @property
    def clock(self) -> Callable[[], int]:
        """What time it is, in microseconds since 1970; only sources and operators that ask for it are told."""
        return self._clock

    @clock.setter
    def clock(self, read: Callable[[], int]) -> None:
        self._clock = Clock(read)

    def _now(self) -> int:
        """By whatever is the clock now."""
        return self._clock()

    def _elapsed(self) -> float:
        """By whatever is the stopwatch now."""
        return self.stopwatch()

    @abstractmethod
    def _drained(self) -> list[Out]:
        """What has come out since the last time."""

    @abstractmethod
    def _plans(self) -> Iterable[Node]:
        """What is run."""

    @abstractmethod
    def _results(self) -> Iterable[tuple[Outlet, Node]]:
        """Where the results of what is run come out."""

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else touches the graph, no lane holds anything back, and no element is under way."""
        with self._gate.alone(), at_rest(self.lanes.values()):
            for _ in self._under_way or ():
                pass
            self._under_way = None
            yield

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else touches the graph; an element may be under way."""
        return self._gate.alone()

    def feed(self, stream: str, item: Item) -> list[Out]:
        """Take an item of a stream; what comes of it."""
        name = self._known(stream)
        with self._alone():
            item = self._entered(name, item)
            self._check(name, item)
            items: list[Item] = [item]
            if isinstance(item, Batch) and not self._entrance(name).schema.attributes:  # else promises may lack a time
                batch, dead = without_time(item)
                items = [*dead, batch]
            for each in items:
                for _ in self._steps(stream, each):
                    pass
            return self._collect()

    def _check(self, stream: str, item: object) -> None:
        check_item(self.graph.sources[stream][0].plan, stream, item)

    def _entered(self, stream: str, item: Item) -> Item:
        """Rows that bring no times are given them as they enter."""
        if not isinstance(item, Batch):
            return item
        return self.stamps.stamped(stream, item, self._entrance(stream), self.clock())

    def _entering(self, stream: str, item: Item) -> Iterator[None]:
        """An item that a source gave; where timers fire, they may have to before it."""
        if self._goes_by_the_clock(stream):
            yield from self.graph.tick(self.clock())
        yield from self._steps(stream, self._entered(stream, item))

    def _bursting(self, stream: str, batches: Sequence[Batch]) -> Iterator[None]:
        if self._goes_by_the_clock(stream):
            yield from self.graph.tick(self.clock())
        yield from self._arriving.burst(stream, batches)

    def _says_when_silent(self, stream: str) -> bool:
        """Whether it matters that a stream has nothing in its turn."""
        return self.silences.speaks_of(stream) or self._goes_by_the_clock(stream)

    def _steps(self, stream: str, item: Item) -> Iterator[None]:
        if isinstance(item, DeadLetter):
            self._bury(stream, item)
            return iter(())
        if isinstance(item, Batch):
            self._reads[stream.lower()] += len(item)
        elif not self._entrance(stream).takes(item):
            self._bury(stream, DeadLetter(NOT_DECLARED, str(item)))
            return iter(())
        return self.graph.steps(stream, item)

    def burst(self, stream: str, batches: Sequence[Batch]) -> Iterator[None]:
        """Take several batches of a stream that came together, with a halt whenever something has come out.

        They wait at its entrance, and the strategy decides how far each goes before the next is looked at.
        """
        name = self._known(stream)
        if not isinstance(batches, Sequence) or not all(isinstance(batch, Batch) for batch in batches):
            raise StreamError("A burst is a list of batches.", where=stream, got=repr(batches)[:200])
        return self.graph.burst(stream, self._admitted(name, batches))

    def _admitted(self, stream: str, batches: Sequence[Batch]) -> list[Batch]:
        """Several batches of a stream, which enter together: they have their times, and are counted as read."""
        entered = [self.stamps.stamped(stream, batch, self._entrance(stream), self.clock()) for batch in batches]
        for batch in entered:
            self._check(stream, batch)
        self._reads[stream] += sum(map(len, entered))
        return entered

    def tick(self, now: int) -> list[Out]:
        """It is `now`, in microseconds since 1970; what comes of that."""
        now = checked_now(now, "tick")
        with self._alone():
            for _ in self.graph.tick(now):
                pass
            return self._collect()

    def _idle_steps(self, stream: str) -> Iterator[None]:
        """A source has nothing: if anything waits for it, it or the clock may tell how far it has come.

        Operators are told the time.
        """
        now, entrance = self.clock(), self._entrance(stream)
        by_clock = self.silences.bound(stream, entrance.by_rows(), now)
        if self.demand.wants(stream):
            found = promise_of(self._reading.get(stream), stream, now), by_clock
            bound = max((each for each in found if each is not None), default=MIN_TICK)
            if bound > entrance.reached():
                yield from self.graph.steps(stream, linear(str(entrance.schema.time), min(bound, END_OF_TIME)))
        yield from self.graph.tick(now)

    def _source_failed(self, stream: str, error: PenstockError) -> None:
        """The source of a stream has failed, and with it the run."""
        raise error

    def _bury(self, stream: str, letter: DeadLetter) -> None:
        self._reads[stream.lower()] += 1
        self.side.bury(stream, letter)

    def pusher(self, stream: str) -> Callable[[Row], None]:
        """A function that takes one row of a stream at a time, at the least cost per row; `take` gives the results.

        A row is a tuple in the order of the schema. Times may be ticks, which is cheapest, or datetimes. Of a stream
        with lives the ends are no part of the tuple, which lives for a tick: what lives longer, or is revised, is
        pushed as an `Insert` or `Adjust`. What does not fit is a dead letter. Several threads may push. Of a stream
        whose rows are stamped here the time is no part of the tuple.
        """
        name = self._known(stream)
        if self.stamps.bare(name) is not None:
            return partial(self._push_bare, name)
        with self._alone():
            if name not in self.lanes:
                bury = partial(self.side.bury, stream)
                self.lanes[name] = lane_of(self.graph, name, self.builder.functions, bury, self._gate)
        return self.lanes[name].push

    def _push_bare(self, stream: str, row: Row) -> None:
        """A row that is stamped as it enters: nobody else may move the stream meanwhile, which a lane would allow."""
        bare = self.stamps.bare(stream)
        assert bare is not None
        made = conform_row(bare, row)
        with self._alone():
            for _ in self._entering(stream, made if isinstance(made, DeadLetter) else Batch(bare, [made])):
                pass

    def take(self) -> list[Out]:
        """What has come out since the last time."""
        with self._alone():
            return self._collect()

    def end(self, stream: str) -> list[Out]:
        """End one stream, so that it holds back no other; what comes of it."""
        self._known(stream)
        with self._alone():
            self.graph.end(stream)
            return self._collect()

    def release(self, most: int | None = None) -> list[Out]:
        """Let rows that wait in update queues go on, at most so many of each; what comes of it.

        Those that went on before count as delivered. A `run` does this by itself.
        """
        with self._alone():
            self._draining.by_hand(most)
            return self._collect()

    def close(self) -> list[Out]:
        """End all streams; what comes of it. Every row that was read must be accounted for by then."""
        with self._alone():
            self.graph.close()
            self._draining.by_hand(None)
            found = self._collect()
        self.settled.check(self.label)
        return found

    def run(
        self,
        sources: Mapping[str, Opener],
        max_dead: float | None = None,
        stopped: Callable[[], object] | None = None,
        *,
        live: Mapping[str, int] | None = None,
        between: Callable[[], object] | None = None,
    ) -> Iterator[Out]:
        """Read every source to its end, a batch from each in turn, then close.

        Args:
            sources: how to open each stream.
            max_dead: how many dead letters are borne, see `DeadLimit`.
            stopped: asked between two elements, and within one of which much comes out, while there is more to do;
                once it says so the run ends as it is, and what is open stays open. Items that live sources gave by then
                are taken first.
            live: streams whose sources may block, with how many items may be read ahead of each: they are read beside
                the others. Without it the caller waits for whichever has its turn.
            between: called when the sources are open, and after every item, when it is known what became of it.
        """
        limit = DeadLimit(max_dead)
        stopped = stopped if stopped is not None else _never
        between = between if between is not None else _never
        if not callable(stopped) or not callable(between):
            raise StreamError("stopped and between are called, so they are functions.", got=repr((stopped, between)))
        self._ahead = checked_ahead(live)
        self._arriving.reader = threading.get_ident()
        pulling = self._open(sources)
        self.begun.set()
        try:
            between()
            if self._finishing is not None:
                pulling.halt(at_rest=False)
            is_cut = bool(stopped())
            for name, item in pulling.turns() if not is_cut else ():
                if isinstance(item, Leisure):
                    yield from self._draining.after(None, stopped)
                else:
                    began = self.stopwatch()
                    taken = self._draining.together(name, item)
                    yield from self._in_portions(self._steps_of(name, taken), stopped)
                    between()
                    limit.check(self.settled, self.label, self.side.last)
                    yield from self._draining.after(name, stopped)
                    if self.shares is not None:
                        self.shares.charge(name, self.stopwatch() - began)
                if self._under_way is not None:
                    return
                if not is_cut and self._reading and stopped():
                    is_cut = True
                    pulling.halt(at_rest=True)
            if self._reading and (is_cut or self._finishing is None):
                stopped()  # so that whoever stopped it knows that there was more
                return
            yield from self._closed(stopped)
            yield from self._draining.last(stopped)
            between()
        finally:
            self._pulling = None
            pulling.close()
        self.settled.check(self.label)
        limit.check(self.settled, self.label, self.side.last, at_end=True)

    def _open(self, sources: Mapping[str, Opener]) -> Pulling[Given]:
        """The sources of all streams, open and to be pulled; those of streams that join from here on are added."""
        try:
            for name in self.streams:
                self._reading[name] = opened(name, sources)
                at_position(name, self._reading[name], self.positions)
        except BaseException:
            let_go(self._reading.values())
            raise
        pulling = self._pulling = Pulling[Given](turn=1)
        pulling.other_work = self._draining.work
        pulling.shares = self.shares
        pulling.says_when_silent = self._says_when_silent
        if self.graph.queued:  # what waits for room would not make what waits in a queue newer
            self._ahead = {name: max(ahead, MANY) for name, ahead in self._ahead.items()}
        for name, items in list(self._reading.items()):
            pulling.add(name, items, self._ahead.get(name.lower()))
        return pulling

    def _steps_of(self, stream: str, pulled: Given | Exhausted) -> Callable[[], Iterator[None]]:
        """What is to be run for what a source has given: an item, nothing, or no more."""
        if isinstance(pulled, Exhausted):
            self._reading.pop(stream, None)
            if pulled.error is not None:
                self._source_failed(stream, failed(stream, pulled.error))
            return partial(self.graph.end_steps, stream)
        if isinstance(pulled, Poll):
            return partial(self._idle_steps, stream)
        self.taken += 1
        if self.silences.speaks_of(stream):
            self.silences.came(stream, self.clock())
        if isinstance(pulled, Handed):
            return partial(self._handed, stream, pulled)
        if isinstance(pulled, Batch) and self.graph.takes_bursts and self._pulling is not None:
            more = self._pulling.more(stream, Batch, MOST)
            self.taken += len(more)
            return partial(self._bursting, stream, [pulled, *more])
        if self.stamps.bare(stream) is None and not self._goes_by_the_clock(stream):
            return partial(self._steps, stream, pulled)
        return partial(self._entering, stream, pulled)

    def _handed(self, stream: str, handed: Handed[Item]) -> Iterator[None]:
        """What came with a position is taken as one: nobody who looks at the graph sees a part of it."""
        self.positions[stream.lower()] = handed.position
        for item in handed.items:
            yield from self._entering(stream, item)

    def _in_portions(self, begin: Callable[[], Iterator[None]], stopped: Callable[[], object]) -> Iterator[Out]:
        """Run an element, and hand on what comes out before the rest of it is run.

        Once stopped, one of which much has come out stays under way; any other is run to its end.
        """
        with self._alone():
            steps = self._under_way = begin()
        more, rows = True, 0
        while more and not (rows >= MUCH and stopped()):
            with self._gate.alone(), at_rest(self.lanes.values()):
                # What is no longer under way was run to its end by somebody else.
                more = self._under_way is steps and next(steps, self) is not self
                if not more:
                    self._under_way = None
                found = self._collect()
            for item in found:
                rows += self._rows_in(item)
                yield item

    @property
    def is_under_way(self) -> bool:
        """Whether an element was begun and is not at its end."""
        return self._under_way is not None

    @property
    def counts(self) -> Counts:
        """Where the rows went that were fed or pushed so far; while an element is under way, as it was before it."""
        with self._gate.alone(), at_rest(self.lanes.values()):
            if self._under_way is None:
                self.settled = self._counted()
            return self.settled

    @staticmethod
    def _rows_in(out: Out) -> int:
        """How many rows come out with it."""
        return len(out) if isinstance(out, Batch) else 0

    def statistics(self, query: str | None = None) -> GraphStatistics:
        """What is known of every operator, arc and result, or those of a query; an element may be under way."""
        if query is not None and not isinstance(query, str):
            raise StreamError("The name of a query is a text.", where="statistics", got=repr(query)[:200])
        with self._gate.alone(), at_rest(self.lanes.values()):
            return statistics_of(self.graph, self.outlets(), self._rates, query)

    @abstractmethod
    def outlets(self) -> Mapping[str, Outlet]:
        """Where results are taken, by the names of their queries."""

    def _collect(self) -> list[Out]:
        now = self.stopwatch()
        if now >= self._rates.next:
            self._rates.look(now, self.graph.nodes)
        self.settled = self._counted()
        return self._drained()

    def _counted(self) -> Counts:
        return self._counted_of(self._reads.keys() | self.graph.sources.keys())

    def _counted_of(self, streams: Iterable[str]) -> Counts:
        """Where the rows of some streams went, by their names in lower case."""
        names = set(streams)
        entrances = [node for node in self._entrances() if str(node.stream).lower() in names]
        ingests = [node.operator for node in entrances]
        return Counts(
            read=sum(self._reads[name] for name in names)
            + sum(lane.read() for name, lane in self.lanes.items() if name in names),
            on_time=sum(node.statistics.rows_out for node in entrances),
            punctuation=sum(ingest.punctuation for ingest in ingests),  # type: ignore[attr-defined]
            skipped=sum(ingest.skipped for ingest in ingests),  # type: ignore[attr-defined]
            **self._left(names),
        )

    def _left(self, streams: set[str]) -> dict[str, int]:
        """How many rows of some streams were late, dead, or failed in an operator."""
        return {"late": self.side.lates, "dead": self.side.dead, "failed": self.side.failed}

    # Of a run that goes on, from any thread

    def halt(self) -> None:
        """`run` is to ask at once whether it is stopped, also while every source is silent."""
        pulling = self._pulling
        if pulling is not None:
            pulling.halt(at_rest=True)

    def finish(self, *, for_good: bool = False) -> None:
        """`run` reads live sources no further, and those at rest to their end; then it closes all streams."""
        self._finishing = bool(for_good)
        pulling = self._pulling
        if pulling is not None:
            pulling.halt(at_rest=False)

    @property
    def is_over(self) -> bool:
        """Whether `run` was begun and reads nothing any more."""
        return self.begun.is_set() and self._pulling is None

    def process_available(self) -> None:
        """Until `run` has taken everything that the sources gave, and waits for more, or is over."""
        pulling = self._pulling
        if pulling is not None:
            pulling.wait_until_idle()

    def say(self, stream: str, punctuation: Punctuation) -> None:
        """`run` takes a bound from outside, as if the stream had said it."""
        self._check(self._known(stream), punctuation)
        pulling = self._pulling
        if pulling is not None:
            name = next(n for n in self.streams if n.lower() == stream.lower())
            pulling.say(name, punctuation)

    def _closed(self, stopped: Callable[[], object]) -> Iterator[Out]:
        """Close the streams that had not ended when `finish` was called."""
        known = [tick for tick in self.newest().values() if tick is not None]
        bounds = [closing_bound(plan, max(known)) for plan in self._plans()] if known else []
        closing = None if None in bounds else max([b for b in bounds if b is not None], default=None)
        if not known and not self._finishing:
            return
        bound = END_OF_TIME if self._finishing or closing is None else closing
        for name in sorted(self._reading, key=self.streams.index):
            attribute = str(self._entrance(name).schema.time)
            yield from self._in_portions(partial(self.graph.steps, name, linear(attribute, bound)), stopped)


def _never() -> bool:
    return False
