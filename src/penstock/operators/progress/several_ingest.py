"""Where a stream enters of which several attributes progress: it is late by any of them, and bounds go on for each.

A row of data is late when it is below the bound of an attribute, or contradicts a promise that holds for several
attributes together, or for some groups. The promise that condemned it is given back with it: the linear one on the
attribute that is declared first, else the one with the greatest bounds (`_rank`). What punctuation says of several
attributes, and whatever is told from outside, is kept as a frontier beside the trackers.

Linear punctuation is passed on per attribute, at bounds that a consumer of that attribute named as useful; joint and
group-wise punctuation where all of its attributes are of use to somebody. Rows of a batch come first, all together, and
what they allow to be said follows them. Nothing more comes after the end of one attribute, so it is the end of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.operator import Outputs, Rejected
from penstock.operators.progress import lateness
from penstock.operators.progress.entrance import Ingest
from penstock.operators.progress.ingest import BatchIngest, RowIngest
from penstock.operators.progress.marks import AMBIGUOUS, DATA, PUNCTUATION, UNJUDGED, PunctuationMarks
from penstock.operators.progress.promises import Said, coded_keys
from penstock.operators.progress.several import INCOMPLETE, Seen, SeveralTracker
from penstock.operators.state import PROMISES

PASSED = f"{PROMISES} passed on"


class SeveralIngest(Ingest):
    """What both forms share."""

    kind = "punctuation of several attributes"
    tracker: SeveralTracker  # type: ignore[assignment]

    def __init__(
        self,
        schema: Schema,
        tracker: SeveralTracker,
        wanted: Mapping[str, tuple[int, int]],
        *,
        by_arrival: bool = False,
    ) -> None:
        """`wanted`: per attribute that somebody can use, the step and origin of useful bounds."""
        super().__init__(schema, tracker, by_arrival=by_arrival)  # type: ignore[arg-type]
        self.wanted = dict(wanted)
        self.time = tracker.names.index(str(schema.time))

    def takes(self, punctuation: Punctuation) -> bool:
        """Promises of any shape on what progresses."""
        named = {name for name, _ in punctuation.constants}
        return {name for name, _ in punctuation.bounds} <= set(self.tracker.names) and named <= set(self.schema.names)

    def require(self, useful: tuple[int, int], told: int) -> None:
        """Whoever shares the entrance can use bounds of another attribute: `wanted` says it."""

    # Promises

    def _frontier(self) -> Frontier:
        return self.frontier() or Frontier()

    def _bounds(self) -> list[int]:
        """What is promised of each attribute by itself."""
        frontier = self._frontier()
        own = self.tracker.bounds(self.pages.get("progress"))
        return [max(b, frontier.bound(name)) for name, b in zip(self.tracker.names, own, strict=True)]

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """A promise from outside, of any shape: it also condemns the rows that follow it."""
        if self.takes(punctuation):
            self._promise(punctuation)
            yield from self.pass_all_on([punctuation])

    def _promise(self, promise: Punctuation) -> bool:
        """Keep a promise; whether it is new."""
        frontier = self._frontier()
        if promise.is_end:
            self.pages.put("outside", END_OF_TIME)
            for name in self.tracker.names:
                frontier.add(linear(name, END_OF_TIME))
        elif promise.is_linear and promise.attribute == self.schema.time:
            self.pages.put("outside", max(self.outside(), promise.value))
        is_new = frontier.add(promise)
        self.pages.put(PROMISES, frontier)
        return is_new

    def _forget(self) -> None:
        """Promises that the attributes have passed by themselves say nothing any more."""
        frontier = self._frontier()
        if any(not promise.is_linear for promise in frontier):
            added = [frontier.add(linear(n, b)) for n, b in zip(self.tracker.names, self._bounds(), strict=True)]
            if any(added):
                self.pages.put(PROMISES, frontier)

    def pass_all_on(self, promises: Sequence[Punctuation]) -> Outputs:
        """The bound of each attribute, and some promises of other shapes, where that is new and of use."""
        self._forget()
        if self.by_arrival and not self.has_ended:
            return
        passed: Frontier = self.pages.get(PASSED) or Frontier()
        for name, bound in zip(self.tracker.names, self._bounds(), strict=True):
            told = passed.bound(name)
            if name in self.wanted and bound > told and self._crosses(name, told, bound):
                passed.add(linear(name, bound))
                self.pages.put(PASSED, passed)
                yield linear(name, bound)
        for promise in promises:
            of_use = all(name in self.wanted for name, _ in promise.bounds)
            if of_use and not promise.is_linear and passed.add(promise):
                self.pages.put(PASSED, passed)
                yield promise

    def _crosses(self, name: str, told: int, bound: int) -> bool:
        """Whether between two bounds there is one of use."""
        step, origin = self.wanted[name]
        return told == MIN_TICK or bound == END_OF_TIME or (bound - origin) // step > (told - origin) // step

    # Rows

    def refused(self, batch: Batch, seen: Seen) -> Outputs:
        """Rows that take no part, in whatever order they come."""
        kinds = seen.kinds
        if (kinds <= PUNCTUATION).all():
            return
        ambiguous, incomplete, unjudged = kinds == AMBIGUOUS, kinds == INCOMPLETE, kinds == UNJUDGED
        if ambiguous.any():
            yield lateness.ambiguous(batch.select(ambiguous), ())
        if incomplete.any():
            missing = (~seen.valid[:, incomplete]).argmax(axis=0).tolist()
            yield lateness.incomplete(batch.select(incomplete), [self.tracker.names[at] for at in missing])
        if unjudged.any():
            rows = batch.select(unjudged)
            yield Rejected("dead", rows, (), [self._why(row) for row in rows.rows])

    def _why(self, row: tuple[object, ...]) -> str:
        """Why it cannot be told whether a row is punctuation."""
        marks = [e.marks_of for e in self.tracker.entries if isinstance(e.marks_of, PunctuationMarks)]
        return next(m.reason(row) for m in marks if m.single(row) == UNJUDGED)

    def judged(
        self, batch: Batch, seen: Seen, bounds: np.ndarray, held: Sequence[Punctuation], said: Sequence[Said]
    ) -> Outputs:
        """The rows on time, and before them what is late or goes backwards.

        `bounds` are those of each attribute before each row, `held` the promises of other shapes before all of them,
        `said` those that hold from a place in the batch on.
        """
        data = seen.kinds == DATA
        cause = self._causes(batch, seen, bounds, held, said) if not self.by_arrival or self.has_ended else None
        late = np.zeros(len(batch), np.bool_) if cause is None else data & (cause >= 0)
        yield from self._backwards(batch, seen, bounds)
        if late.any() and cause is not None:
            yield self._late(batch, seen, bounds, held, said, late, cause)
        keep = data & ~late
        needed = self.needed()
        if needed > MIN_TICK:
            skipped = keep & (seen.values[self.time] < needed)
            keep &= ~skipped
            self.skipped += int(skipped.sum())
        if keep.any():
            self.reach(int(seen.values[self.time][keep].max()))
            yield batch if keep.all() else batch.select(keep)

    def _causes(
        self, batch: Batch, seen: Seen, bounds: np.ndarray, held: Sequence[Punctuation], said: Sequence[Said]
    ) -> np.ndarray:
        """Per row the attribute whose bound condemns it, one more than there are for another promise, -1 for none."""
        below = seen.values < bounds
        below |= bounds == END_OF_TIME
        cause = np.where(below.any(axis=0), below.argmax(axis=0), -1)
        other = self._by_others(batch, seen, held)
        for each in said:
            if not each.promise.is_linear:
                other[each.place + 1 :] |= self._is_below(each.promise, seen)[each.place + 1 :]
        return np.where((cause < 0) & other, len(self.tracker.names), cause)

    def _is_below(self, promise: Punctuation, seen: Seen) -> np.ndarray:
        """Which rows are below every bound of a promise."""
        below = np.ones(seen.values.shape[1], np.bool_)
        for name, bound in promise.bounds:
            if bound != END_OF_TIME:
                below &= seen.values[self.tracker.names.index(name)] < bound
        return below

    def _by_others(self, batch: Batch, seen: Seen, held: Sequence[Punctuation]) -> np.ndarray:
        """Which rows contradict one of some promises; those with constants cost a look per distinct key."""
        found = np.zeros(len(batch), np.bool_)
        by_columns: dict[tuple[str, ...], dict[tuple[Any, ...], list[Punctuation]]] = {}
        for promise in held:
            if not promise.constants:
                found |= self._is_below(promise, seen)
                continue
            names, key = zip(*promise.constants, strict=True)
            by_columns.setdefault(names, {}).setdefault(key, []).append(promise)
        for columns, promises in by_columns.items():
            codes, keys = coded_keys(self.schema, batch, columns)
            for code, key in enumerate(keys):
                for promise in promises.get(key, ()):
                    found |= (codes == code) & self._is_below(promise, seen)
        return found

    def _late(
        self,
        batch: Batch,
        seen: Seen,
        bounds: np.ndarray,
        held: Sequence[Punctuation],
        said: Sequence[Said],
        late: np.ndarray,
        cause: np.ndarray,
    ) -> Rejected:
        rows = batch.select(late)
        condemning = []
        for row, place in zip(rows.rows, np.flatnonzero(late).tolist(), strict=True):
            at = int(cause[place])
            if at < len(self.tracker.names):
                condemning.append(linear(self.tracker.names[at], int(bounds[at, place])))
                continue
            values = dict(zip(self.schema.names, row, strict=True))
            known = [*held, *(s.promise for s in said if s.place < place and not s.promise.is_linear)]
            condemning.append(max((p for p in known if p.condemns(values)), key=self._rank))
        return lateness.late_by_promises(rows, condemning)

    def _rank(self, promise: Punctuation) -> tuple[list[int], int, str]:
        """Of the promises that condemn a row the greatest is named; what follows from another one never is."""
        bounds = dict(promise.bounds)
        vector = [bounds.get(name, END_OF_TIME) for name in self.tracker.names]
        return vector, -len(promise.constants), str(promise)

    def _backwards(self, batch: Batch, seen: Seen, bounds: np.ndarray) -> Outputs:
        """Punctuation that is below the bound of an attribute that it alone speaks for."""
        spoken = seen.kinds == PUNCTUATION
        below = np.zeros(seen.values.shape, np.bool_)
        for number, entry in enumerate(self.tracker.entries):
            if entry.is_punctuated:
                own = list(entry.attributes)
                alone = seen.is_said(number) & (seen.valid[own].sum(axis=0) == 1)
                below[own] |= alone & seen.valid[own] & (seen.values[own] < bounds[own])
        backwards = np.asarray(below.any(axis=0), np.bool_)
        self.punctuation += int(spoken.sum()) - int(backwards.sum())
        if backwards.any():
            at, places = below.argmax(axis=0)[backwards].tolist(), np.flatnonzero(backwards).tolist()
            told = [linear(self.tracker.names[a], int(bounds[a, p])) for a, p in zip(at, places, strict=True)]
            yield lateness.backwards_by_promises(batch.select(backwards), told)


class SeveralByRow(SeveralIngest, RowIngest):
    """Judges each row by the rows before it."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Split the batch, then say how far each attribute has come."""
        if not len(batch):
            return
        seen = self.tracker.see(batch)
        yield from self.refused(batch, seen)
        frontier = self._frontier()
        held = [promise for promise in frontier if not promise.is_linear]
        before, state = self.tracker.by_row(self.pages.get("progress"), seen)
        told = [frontier.bound(name) for name in self.tracker.names]
        bounds = np.maximum(before, np.array(told, np.int64)[:, None])
        said = self._said(seen, bounds)
        yield from self.judged(batch, seen, bounds, held, said)
        self.pages.put("progress", state)
        fresh = [each.promise for each in said if self._promise(each.promise)]
        yield from self.pass_all_on(fresh)

    def _said(self, seen: Seen, bounds: np.ndarray) -> list[Said]:
        """The promises that the batch makes; one on a single attribute raises its bound from there on."""
        said = self.tracker.said_in(seen)
        for each in said:
            if each.promise.is_linear:
                later = bounds[self.tracker.names.index(each.promise.attribute), each.place + 1 :]
                np.maximum(later, each.promise.value, out=later)
        return said


class SeveralByBatch(SeveralIngest, BatchIngest):
    """Judges every row by the batches before its own."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Split the batch; progress waits for `advance`."""
        if len(batch):
            seen = self.tracker.see(batch)
            yield from self.refused(batch, seen)
            bounds = np.broadcast_to(np.array(self._bounds(), np.int64)[:, None], seen.values.shape)
            held = [promise for promise in self._frontier() if not promise.is_linear]
            yield from self.judged(batch, seen, bounds, held, ())

    def announce(self, summary: Any) -> None:
        """Nothing is too far ahead."""

    def advance(self, summary: Any, said: Sequence[Said] = ()) -> Outputs:
        """The batch is complete and had this summary, and these promises, over all of its parts."""
        self.pages.put("progress", self.tracker.advance(self.pages.get("progress"), summary))
        fresh = [each.promise for each in said if self._promise(each.promise)]
        yield from self.pass_all_on(fresh)
