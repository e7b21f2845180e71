"""Random lives of a queue of windows: rows and promises come, time passes, one serves, the state goes through bytes.

A life is played on a queue with one who takes a row at a time, and written down in a log that the oracle reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from penstock.model.elements import groupwise, linear
from penstock.model.plain import decode, encode
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.queues.extents import extents_of
from penstock.operators.queues.window_cells import Promise
from penstock.operators.queues.windowed import WindowedQueue
from penstock.operators.windows.sliding import Sliding
from penstock.papers.upstream.window_service import Service
from penstock.reference import staleness
from penstock.reference import update_windows as oracle

SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("v", "bigint"), ("note", "string")], "ts")
KEYS = ("a", "b", "c")

windows = st.builds(Sliding, st.integers(1, 7), st.integers(1, 4), st.integers(-2, 2))
plans = st.lists(windows, min_size=1, max_size=3)
steps = st.one_of(
    st.tuples(st.just("row"), st.sampled_from(KEYS), st.integers(0, 7), st.sampled_from(["", "some", "x" * 70])),
    st.tuples(st.just("row"), st.sampled_from(KEYS), st.integers(0, 3), st.just("")),
    st.tuples(st.just("say"), st.integers(1, 5), st.sampled_from([None, None, *KEYS])),
    st.tuples(st.just("pass"), st.integers(1, 4)),
    st.tuples(st.just("again")),
)
scripts = st.lists(steps, min_size=4, max_size=24)

Make = Callable[..., WindowedQueue]


@dataclass
class Life:
    """A queue, who serves it, and what happened."""

    make: Make
    plan: list[Sliding]
    cost: int = 1
    promise: Promise = Promise.NOTHING
    block_bytes: int = 64
    log: oracle.WindowLog = field(default_factory=oracle.WindowLog)
    now: int = 10
    rows: int = 0
    bounds: dict[str | None, int] = field(default_factory=lambda: {None: 0})
    promised: list[tuple[int, int]] = field(default_factory=list)
    """How many windows had ended, and what was promised of the others."""

    def __post_init__(self) -> None:
        self.service = Service(self._new(), self.cost)
        self.levels = [oracle.Level(w.range, w.slide, w.origin, sum) for w in self.plan]

    def _new(self) -> WindowedQueue:
        return self.make(SCHEMA, ("k",), extents_of(self.plan), promise=self.promise, block_bytes=self.block_bytes)

    @property
    def queue(self) -> Any:
        return self.service.queue

    def play(self, script: list[tuple[Any, ...]], check: Callable[[Life], None] = lambda life: None) -> None:
        for step in script:
            getattr(self, f"_{step[0]}")(*step[1:])
            check(self)

    def end(self) -> None:
        """The stream ends, and all is served."""
        self.now += 1
        self.service.run([(self.now, linear("ts", END_OF_TIME))])
        self.log.arrivals.append(oracle.Said(END_OF_TIME, self.now))
        self.now = self.service.now
        self._note()

    def bound(self, key: str) -> int:
        return max(self.bounds[None], self.bounds.get(key, MIN_TICK))

    def _row(self, key: str, ahead: int, note: str) -> None:
        time = self.bound(key) + ahead
        self.rows += 1
        self.service.run([(self.now, (time, key, self.rows, note))], until=self.now)
        self.log.arrivals.append(oracle.Came(key, time, self.rows, self.now))
        if self.promise is not Promise.NOTHING:
            self.bounds[key] = time + (self.promise is Promise.STRICTLY)
            self.log.arrivals.append(oracle.Said(self.bounds[key], self.now, key))
        self._note()

    def _say(self, further: int, key: str | None) -> None:
        bound = (self.bounds[None] if key is None else self.bound(key)) + further
        self.bounds[key] = bound
        said = linear("ts", bound) if key is None else groupwise("ts", bound, k=key)
        self.service.run([(self.now, said)], until=self.now)
        self.log.arrivals.append(oracle.Said(bound, self.now, key))
        self._note()

    def _pass(self, ticks: int) -> None:
        self.now += ticks
        self.service.run([], until=self.now)
        self._note()

    def _again(self) -> None:
        """The state goes through bytes into a queue that is made anew."""
        plain = encode(self.queue.to_plain())
        anew = self._new()
        anew.from_plain(decode(plain), anew.version)
        assert encode(anew.to_plain()) == plain
        self.service.queue = anew

    def _note(self) -> None:
        self.promised.append((self.queue.counts.windows_closed, self.queue.promised()))
        self.log.commits[:] = [oracle.Answer(c.key[0], c.window, c.at) for c in self.service.commits]
        self.log.results[:] = [oracle.Answer(r.key[0], r.window, r.at, self._answer(r)) for r in self.service.results]

    def _answer(self, done: Any) -> Any:
        """What the plan makes of the rows that were given for a window."""
        return oracle.answer(self.levels, done.window, [(row[0], row[2]) for row in done.rows])

    def staleness(self, key: str | None, *, eager: bool) -> list[Fraction]:
        """As `Staleness` has it, by the oracle: of queue, application, and in windows; now and on average."""
        queue = oracle.queue_updates(self.log, self.levels, eager=eager)
        application = oracle.application_updates(self.log, self.levels)
        start = min(each.at for each in self.log.arrivals if isinstance(each, oracle.Came))
        keys = self.log.keys if key is None else [key]
        now, averages = [Fraction(0)] * 3, [Fraction(0)] * 3
        for each in keys:
            asked = (each, queue.dequeues), (each, application.deliveries)
            now[0] += staleness.staleness_at(queue, *asked[0], self.now)
            now[1] += staleness.staleness_at(application, *asked[1], self.now)
            now[2] += len(application.pending(*asked[1], self.now))
            averages[0] += staleness.staleness_integral(queue, *asked[0], start, self.now)
            averages[1] += staleness.staleness_integral(application, *asked[1], start, self.now)
            averages[2] += staleness.unapplied_integral(application, *asked[1], start, self.now)
        passed = self.now - start
        return [*[v / len(keys) for v in now], *[v / len(keys) / passed if passed else Fraction(0) for v in averages]]


def held_rows(queue: WindowedQueue) -> list[Any]:
    """All tuples that a queue holds, of all keys."""
    cells = queue._cells
    return [each for cell in cells for chain in (cell.buffer.chain, cell.buffer.stragglers) for each in chain]


def blocks(queue: WindowedQueue) -> int:
    """How many blocks a queue has."""
    cells = queue._cells
    return sum(len(chain.blocks) for cell in cells for chain in (cell.buffer.chain, cell.buffer.stragglers))
