"""One run of a query in-process: sources in, elements out, late rows and dead letters kept apart.

Several streams are read in turn, a batch from each; those that may block, if the caller names them, beside the others,
so that they hold nobody up (`runtime.pulling` says what order that gives). At the end of each of them a closing
punctuation is implied, so that a stream that has ended holds back no other, and every window up to the last row's is
put out.

While sources are `run`, what comes of one element is handed on in portions as it is made, so a bound that closes very
many windows never has them all in memory. Whoever touches the execution meanwhile has the element run to its end first,
and whoever feeds it by hand is given all that comes of an item at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from penstock.engines.base import check
from penstock.engines.local.support import SUPPORT
from penstock.errors import PenstockError, SourceError, StreamError, reason_of
from penstock.model.accounts import Counts, DeadLimit
from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter
from penstock.model.elements import Punctuation, is_whole, linear
from penstock.model.letters import DEAD_SCHEMA, late_schema
from penstock.model.recent_promises import MOST, RecentPromises, Shown
from penstock.model.time import END_OF_TIME, Domain
from penstock.operators.progress.ingest import RowIngest
from penstock.plan.catalog import Catalog
from penstock.plan.closing import closing_bound
from penstock.plan.nodes import Node, Source
from penstock.plan.physical import Physical
from penstock.plan.planner import in_process
from penstock.runtime.builder import Builder
from penstock.runtime.gate import Gate
from penstock.runtime.graph import QueryGraph
from penstock.runtime.lane import Lane, at_rest, lane_of
from penstock.runtime.pulling import Exhausted, Pulling
from penstock.runtime.side_outputs import SideOutputs

__all__ = ["DEAD_SCHEMA", "Counts", "LocalExecution", "Opener", "SideOutputs", "late_schema"]

Item = Batch | DeadLetter | Punctuation
Outputs = list[Batch | Punctuation]
Opener = Callable[[], Iterator[Item]]
MUCH = 1000
"""A run that is stopped leaves an element of which more rows than this have come out as it is."""


class LocalExecution:
    """A running query graph with its counts; it may be fed from several threads."""

    def __init__(self, plan: Node, catalog: Catalog, planned: Physical | None = None) -> None:
        """Refuse at once what the engine does not support; `planned` says how it runs, where that is known already."""
        check(plan, "in-process", SUPPORT)
        self.plan = plan
        self.builder = Builder(catalog)
        self.graph = QueryGraph(planned or in_process(plan, catalog), self.builder)
        self.lanes: dict[str, Lane] = {}
        sources = [n for n in plan.walk() if isinstance(n, Source)]
        self.streams = list(dict.fromkeys(s.name for s in sources))
        self.side = SideOutputs(late_schema(sources[0].schema))
        self.graph.side = self.side.take
        self.settled = Counts()
        """Where rows had gone when somebody last looked between two elements."""
        self.taken = 0
        """How many items of sources `run` has taken."""
        self.begun = threading.Event()
        """Set when `run` has opened its sources, or will not."""
        self._read = 0
        self._pulling: Pulling[Item] | None = None
        self._finishing: bool | None = None
        self._gate = Gate()
        self._under_way: Iterator[None] | None = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else touches the graph, no lane holds anything back, and no element is under way."""
        with self._gate.alone(), at_rest(self.lanes.values()):
            for _ in self._under_way or ():
                pass
            self._under_way = None
            yield

    def feed(self, stream: str, item: Item) -> Outputs:
        """Take an item of a stream; what comes of it."""
        self._check_item(self._known(stream), item)
        with self._alone():
            for _ in self._steps(stream, item):
                pass
            return self._collect()

    def _known(self, stream: str) -> str:
        """The key of a stream that the query reads."""
        if not isinstance(stream, str) or stream.lower() not in self.graph.sources:
            raise StreamError(
                "The query reads no such stream.", got=str(stream)[:200], hint=f"it reads {', '.join(self.streams)}"
            )
        return stream.lower()

    def _check_item(self, stream: str, item: object) -> None:
        """What is fed is a batch of the stream, a dead letter, or a punctuation that bounds the stream."""
        if isinstance(item, Batch):
            wanted, got = self.graph.sources[stream][0].plan.schema, item.schema
            if got is wanted or got.fields == wanted.fields:
                return
            raise StreamError("A batch has other columns than its stream.", where=stream, got=got.ddl, hint=wanted.ddl)
        if isinstance(item, Punctuation):
            time = self.graph.sources[stream][0].plan.schema.time
            unknown = [name for name, _ in item.bounds if name != time]
            if unknown:
                raise StreamError(
                    "A punctuation bounds what is not the stream's time.",
                    where=stream,
                    got=", ".join(unknown),
                    hint=f"the time is {time}",
                )
            return
        if not isinstance(item, DeadLetter):
            raise StreamError(
                "This cannot be fed to a stream.",
                where=stream,
                got=type(item).__name__,
                hint="give a Batch, a Punctuation or a DeadLetter; pusher(stream) takes single rows as tuples",
            )

    def _steps(self, stream: str, item: Item) -> Iterator[None]:
        if isinstance(item, DeadLetter):
            self._bury(stream, item)
            return iter(())
        if isinstance(item, Batch):
            self._read += len(item)
        return self.graph.steps(stream, item)

    def _bury(self, stream: str, letter: DeadLetter) -> None:
        self._read += 1
        self.side.bury(stream, letter)

    def pusher(self, stream: str) -> Callable[[Row], None]:
        """A function that takes one row of a stream at a time, at the least cost per row; `take` gives the results.

        A row is a tuple in the order of the schema. Times may be ticks, which is cheapest, or datetimes. A row that
        does not fit the schema is a dead letter. Several threads may push.
        """
        name = self._known(stream)
        with self._alone():
            if name not in self.lanes:
                bury = partial(self.side.bury, stream)
                self.lanes[name] = lane_of(self.graph, name, self.builder.functions, bury, self._gate)
        return self.lanes[name].push

    def take(self) -> Outputs:
        """What has come out since the last time."""
        with self._alone():
            return self._collect()

    def end(self, stream: str) -> Outputs:
        """End one stream, so that it holds back no other; what comes of it."""
        self._known(stream)
        with self._alone():
            self.graph.end(stream)
            return self._collect()

    def close(self) -> Outputs:
        """End all streams; what comes of it. Every row that was read must be accounted for by then."""
        with self._alone():
            self.graph.close()
            found = self._collect()
        self.settled.check(self.plan.label)
        return found

    def feedback(self, bound: int) -> None:
        """The consumer no longer needs what ends before `bound`; the query skips what only serves that."""
        if not is_whole(bound):
            raise StreamError("A bound is an integer.", where="feedback", got=repr(bound)[:200], hint="ticks")
        with self._alone():
            self.graph.feedback(bound)

    def snapshot(self) -> bytes:
        """The state of every operator."""
        with self._alone():
            return self.graph.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Take up the state of a snapshot of the same query."""
        with self._alone():
            self.graph.restore(snapshot)

    def run(
        self,
        sources: Mapping[str, Opener],
        max_dead: float | None = None,
        stopped: Callable[[], object] | None = None,
        *,
        live: Mapping[str, int] | None = None,
        between: Callable[[], object] | None = None,
    ) -> Iterator[Batch | Punctuation]:
        """Read every source to its end, a batch from each in turn, then close.

        Args:
            sources: how to open each stream.
            max_dead: how many dead letters are borne, see `DeadLimit`.
            stopped: asked between two elements, and within one of which much comes out, while there is more to do;
                once it says so the run ends as it is, and what is open stays open. Items that live sources gave by then
                are taken first.
            live: streams whose sources may block, with how many items may be read ahead of each: they are read beside
                the others. Without it the caller waits for whichever has its turn.
            between: called after every item, when it is known what became of it.
        """
        limit = DeadLimit(max_dead)
        stopped = stopped if stopped is not None else _never
        between = between if between is not None else _never
        if not callable(stopped) or not callable(between):
            raise StreamError("stopped and between are called, so they are functions.", got=repr((stopped, between)))
        ahead = _checked_ahead(live)
        reading = {name: _opened(name, sources) for name in self.streams}
        pulling: Pulling[Item] = Pulling(turn=1)
        self._pulling = pulling
        for name, items in reading.items():
            pulling.add(name, items, ahead.get(name.lower()))
        self.begun.set()
        if self._finishing is not None:
            pulling.halt(at_rest=False)
        is_cut = bool(stopped())
        try:
            for name, item in pulling if not is_cut else ():
                if isinstance(item, Exhausted):
                    if item.error is not None:
                        raise _failed(name, item.error)
                    del reading[name]
                    steps = partial(self.graph.end_steps, name)
                else:
                    self.taken += 1
                    steps = partial(self._steps, name, item)
                yield from self._in_portions(steps, stopped)
                between()
                limit.check(self.settled, self.plan.label, self.side.last)
                if self._under_way is not None:
                    return
                if not is_cut and reading and stopped():
                    is_cut = True
                    pulling.halt(at_rest=True)
            if reading and (is_cut or self._finishing is None):
                stopped()  # so that whoever stopped it knows that there was more
                return
            yield from self._closed(reading, stopped)
            between()
        finally:
            self._pulling = None
            pulling.close()
        self.settled.check(self.plan.label)
        limit.check(self.settled, self.plan.label, self.side.last, at_end=True)

    def _in_portions(
        self, begin: Callable[[], Iterator[None]], stopped: Callable[[], object]
    ) -> Iterator[Batch | Punctuation]:
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
                rows += len(item) if isinstance(item, Batch) else 0
                yield item

    @property
    def counts(self) -> Counts:
        """Where the rows went that were fed or pushed so far; while an element is under way, as it was before it."""
        with self._gate.alone(), at_rest(self.lanes.values()):
            if self._under_way is None:
                self.settled = self._counted()
            return self.settled

    def _collect(self) -> Outputs:
        self.settled = self._counted()
        return self.graph.drain()

    def _counted(self) -> Counts:
        entrances = [nodes[0] for nodes in self.graph.sources.values()]  # one read twice by the plan counts once
        ingests = [node.operator for node in entrances]
        return Counts(
            read=self._read + sum(lane.read() for lane in self.lanes.values()),
            on_time=sum(node.statistics.rows_out for node in entrances),
            late=len(self.side.late),
            dead=self.side.dead,
            punctuation=sum(ingest.punctuation for ingest in ingests),  # type: ignore[attr-defined]
            skipped=sum(ingest.skipped for ingest in ingests),  # type: ignore[attr-defined]
            failed=self.side.failed,
        )

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
        self._check_item(self._known(stream), punctuation)
        pulling = self._pulling
        if pulling is not None:
            name = next(n for n in self.streams if n.lower() == stream.lower())
            pulling.say(name, punctuation)

    def _closed(self, reading: Iterable[str], stopped: Callable[[], object]) -> Iterator[Batch | Punctuation]:
        """Close the streams that had not ended when `finish` was called."""
        known = [tick for tick in self.newest().values() if tick is not None]
        closing = closing_bound(self.plan, max(known)) if known else None
        if not known and not self._finishing:
            return
        bound = END_OF_TIME if self._finishing or closing is None else closing
        for name in reading:
            time = self.graph.sources[name.lower()][0].operator.schema.time
            assert time is not None
            yield from self._in_portions(partial(self.graph.steps, name, linear(time, bound)), stopped)

    def domain(self, stream: str) -> Domain:
        """What the ticks of a stream are."""
        return self.graph.sources[self._known(stream)][0].operator.schema.domain

    def frontier(self) -> dict[str, int]:
        """Per stream, the bound below which nothing more comes."""
        return {name: self._entrance(name).reached() for name in self.streams}

    def promised(self) -> dict[str, tuple[Shown, ...]]:
        """Per stream, what it has lately promised of some groups."""
        entrances = {name: self._entrance(name) for name in self.streams}
        kept = {name: (entrance.frontier(), entrance.schema) for name, entrance in entrances.items()}
        return {
            name: () if frontier is None else RecentPromises(frontier.newest(MOST)).shown(schema)
            for name, (frontier, schema) in kept.items()
        }

    def newest(self) -> dict[str, int | None]:
        """Per stream, the greatest time of a row on time that was fed."""
        return {name: self._entrance(name).greatest for name in self.streams}

    def _entrance(self, stream: str) -> RowIngest:
        operator = self.graph.sources[stream.lower()][0].operator
        assert isinstance(operator, RowIngest)
        return operator

    def late(self) -> pa.Table:
        """The late rows so far."""
        return self.side.late.table()

    def dead_letters(self) -> pa.Table:
        """The dead letters so far."""
        return self.side.letters.table()


def _opened(name: str, sources: Mapping[str, Opener]) -> Iterator[Item]:
    """A source as it is read; that it cannot be opened is told as an error in reading it."""
    opener = sources.get(name.lower()) if isinstance(sources, Mapping) else None
    if not callable(opener):
        raise StreamError("Nothing says how a stream is opened.", where=f"stream {name}", got=repr(opener)[:200])
    try:
        return opener()
    except Exception as error:  # it is the user's code
        raise _failed(name, error)  # noqa: B904 - which has its cause


def _never() -> bool:
    return False


def _checked_ahead(live: Mapping[str, int] | None) -> dict[str, int]:
    """How far ahead live sources may be read, by lower-case name."""
    if live is None:
        return {}
    if not isinstance(live, Mapping) or not all(isinstance(n, str) and is_whole(a) and a > 0 for n, a in live.items()):
        raise StreamError(
            "Live streams are given with how many items may be read ahead.", got=repr(live)[:200], hint="{'s': 256}"
        )
    return {name.lower(): ahead for name, ahead in live.items()}


def _failed(name: str, error: BaseException) -> PenstockError:
    """What the user's code raises is told with the stream's name; an error of ours says that itself."""
    if isinstance(error, PenstockError):
        return error
    told = SourceError(
        "The source of a stream failed.",
        where=f"stream {name}",
        got=reason_of(error),
        hint="what was read until then is counted; late rows and dead letters are kept",
    )
    told.__cause__ = error
    return told
