"""Ingest: where a stream enters a query. It puts late rows aside and turns what is known of progress into punctuation.

A row is late when its time is below the bound that precedes it; it is given back as `Rejected` with that bound, and
counts nowhere. An adjust is late by the lesser of its ends, and moves the stream's progress no further than its start:
that the end of an event is known says nothing of what comes next. `RowIngest` judges each row by the rows before it.
`BatchIngest` is for sources that give no order inside a batch: it judges by the bound after the batches before, and is
told by `advance` when a batch is complete.

A bound that follows from the rows is put out after their batch. Where the consumer passes rows on as they come, and
whoever takes them wants to know where it stood, a punctuation row is put out by itself and ends the batch. For windows
it does not: rows after a punctuation are not below it, so the windows that it closes are the same with them or without.
The rows of a batch then come first, all together, and of its bounds only the last, which closes what each of them would
have. Punctuation that speaks for some rows alone (`promises.py`) is put out by itself, for windows after the rows.
What was promised of groups is kept as a frontier, beside what the tracker knows of the stream as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.interleaved import Interleaved
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.operator import Outputs
from penstock.operators.progress import lateness
from penstock.operators.progress.ahead import chosen_marks
from penstock.operators.progress.entrance import Ingest, MarksOf, Split
from penstock.operators.progress.marks import DATA, GROUPWISE, PUNCTUATION, Marks
from penstock.operators.progress.promises import Said
from penstock.operators.state import PROMISES

__all__ = ["BatchIngest", "Ingest", "MarksOf", "RowIngest"]


class RowIngest(Ingest):
    """Judges each row by the rows before it."""

    greatest: int | None = None
    """The greatest time of the rows that were on time, since the operator was made."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Split the batch, then say how far the stream has come."""
        if not len(batch):
            return
        if len(batch) == 1 and not batch.columnar and self.guard is None and batch.lives is None:
            row = batch.rows[0]
            mark = self.marks_of.single(row) if self.marks_of is not None else None
            time: int = row[self.schema.time_index]  # type: ignore[assignment]
            if not self.is_punctuated or mark == DATA:
                yield from self._single(batch, time, mark)
                return
            if mark == PUNCTUATION and self.groups is None:
                yield from self._single_punctuation(batch, time)
                return
        times, state = batch.times(), self.pages.get("progress")
        marks = self.marks(batch)
        if self.guard is not None:
            taken = self.guard.judges(marks)
            admitted, state, refused = self.guard.admit(state, times if taken is None else times[taken])
            if refused:
                if taken is not None:
                    admitted = _spread(admitted, taken)
                yield lateness.ahead(batch.select(~admitted), refused, self.guard.max_ahead)
                batch, times = batch.select(admitted), times[admitted]
                marks = chosen_marks(marks, np.flatnonzero(admitted))
        if self.by_arrival and not self.is_punctuated:
            before = np.full(len(times), MIN_TICK, np.int64)
        else:
            before, state = self.tracker.by_row(state, times, marks, loosely=True)
        self.pages.put("progress", state)
        outside = self.outside()
        linear = before if outside == MIN_TICK else np.maximum(before, outside)
        condemning, said = self._with_promises(batch, marks, linear)
        split = self.split(batch, times, marks, condemning)
        yield from split.rejected
        if split.size:
            self.reach(int((times if split.size == len(times) else times[split.kept]).max()))
        places, told = self._told(times, marks, before, said)
        if told or split.size:
            yield from self._among(split, places, told)
        if self.groups is not None:
            self._forget_passed()
        yield from self.pass_on(self.tracker.bound(state))

    @property
    def _tells_places(self) -> bool:
        """Whether punctuation is put out where it stood, among the rows of a batch."""
        return self.is_in_place and self.step == 1

    def _among(self, split: Split, places: Sequence[int], told: Sequence[Punctuation]) -> Outputs:
        """The rows on time with what is put out among them; for windows, after them."""
        is_whole = split.size == len(split.kept)
        if not told and (is_whole or not split.batch.columnar):
            yield split.on_time
            return
        if self._tells_places:
            left_out = np.flatnonzero(~split.kept)
            kept_before = (np.asarray(places) - np.searchsorted(left_out, places)).tolist()
        else:
            kept_before = [split.size] * len(told)
        made = Interleaved(split.batch, kept_before, told, None if is_whole else split.kept)
        yield from (made,) if split.batch.columnar and (len(told) > 1 or not is_whole) else made.elements()

    def _single(self, batch: Batch, time: int, mark: Any) -> Outputs:
        """One row of data: the same as many, without arrays."""
        state, outside = self.pages.get("progress"), self.outside()
        bound = max(self.tracker.bound(state), outside)
        frontier = self.frontier() if self.groups is not None else None
        if frontier is not None and self.groups is not None:
            bound = max(bound, self.groups.bound(frontier, batch.rows[0]))
        if self.by_arrival:
            bound = outside if outside == END_OF_TIME else MIN_TICK
        else:
            state = self.tracker.observe(state, time, mark)
            self.pages.put("progress", state)
        if time < bound:
            yield lateness.late(batch, [bound])
        elif time < self.needed():
            self.skipped += 1
        else:
            self.reach(time)
            yield batch
        if not self.by_arrival:
            yield from self.pass_on(self.tracker.bound(state))

    def _single_punctuation(self, batch: Batch, time: int) -> Outputs:
        """One row that says how far the stream is: the same, without arrays."""
        state = self.pages.get("progress")
        bound = max(self.tracker.bound(state), self.outside())
        state = self.tracker.observe(state, time, PUNCTUATION)
        self.pages.put("progress", state)
        if time < bound:
            yield lateness.backwards(batch, [bound])
        else:
            self.punctuation += 1
        yield from self.pass_on(self.tracker.bound(state))

    def _with_promises(self, batch: Batch, marks: Marks, linear: np.ndarray) -> tuple[np.ndarray, list[Said]]:
        """The bound that condemns each row, with what is promised of groups, and the promises that are new."""
        if self.groups is None:
            return linear, []
        kinds, frontier = np.asarray(marks), self.frontier() or Frontier()
        said = self.groups.said_in(batch, kinds)
        if not said and not len(frontier):
            return linear, []
        bounds = self.groups.held(frontier, batch)
        taken, forbidden = self.groups.taken(frontier, said, linear)
        self.groups.follow(bounds, batch, taken)
        condemning = _of_groups(kinds, linear, bounds)
        for place, bound in forbidden.items():
            condemning[place] = bound
        if taken:
            self.pages.put(PROMISES, frontier)
        return condemning, taken

    def _told(
        self, times: np.ndarray, marks: Marks, before: np.ndarray, said: Sequence[Said]
    ) -> tuple[list[int], list[Punctuation]]:
        """What is put out before the end of the batch, and the places of the rows that say it."""
        if not self.is_punctuated:
            return [], []
        told = [(each.place, p) for each in said for p in self.pass_on_promise(each.promise, each.known)]
        if self._tells_places:
            places = np.flatnonzero((np.asarray(marks) == PUNCTUATION) & (times > before))
            bounds = self.pass_on_all(times[places].tolist())
            told += zip(places[len(places) - len(bounds) :].tolist(), bounds, strict=True)
        if said:
            told.sort(key=lambda each: each[0])
        return [place for place, _ in told], [punctuation for _, punctuation in told]


class BatchIngest(Ingest):
    """Judges every row by the batches before its own."""

    limit: int | None = None
    """What is reached with the batch at hand: its rows beyond that are too far ahead."""
    greatest: int | None = None
    """The greatest time of the rows that were on time, since somebody set it to None."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Split the batch; progress waits for `advance`."""
        marks = self.marks(batch) if len(batch) else None
        if self.limit is not None and self.guard is not None and len(batch):
            beyond, taken = batch.times() > self.limit, self.guard.judges(marks)
            beyond = beyond if taken is None else beyond & taken
            if beyond.any():
                refused = batch.select(beyond)
                yield lateness.ahead(refused, [self.limit] * len(refused), self.guard.max_ahead)
                batch, marks = batch.select(~beyond), chosen_marks(marks, np.flatnonzero(~beyond))
        if len(batch):
            split = self.split(batch, batch.times(), marks, self._condemning(batch, marks))
            yield from split.rejected
            if split.size:
                newest = int(split.on_time.times().max())
                self.greatest = newest if self.greatest is None else max(self.greatest, newest)
                yield split.on_time

    def _condemning(self, batch: Batch, marks: Marks) -> np.ndarray | int:
        """The bound that condemns each row; promises that the batch itself makes wait for `advance`."""
        linear, frontier = self.linear(), self.frontier()
        if self.groups is None:
            return linear
        kinds = np.asarray(marks)
        held = self.groups.held(frontier or Frontier(), batch)
        bounds = _of_groups(kinds, np.full(len(batch), linear, np.int64), held)
        for each in self.groups.said_in(batch, kinds):
            forbidden = self._forbids(each, linear)
            if forbidden is not None:
                bounds[each.place] = forbidden
        return bounds

    def _forbids(self, said: Said, linear: int) -> int | None:
        """The bound below which a promise goes backwards; None if it does not."""
        frontier = self.frontier()
        if said.at < linear:
            return linear
        known = MIN_TICK if frontier is None else frontier.bound(said.promise.attribute, dict(said.promise.constants))
        return known if said.bound < known else None

    def announce(self, summary: Any) -> None:
        """The rows that come next are of a batch with this summary, over all of its parts."""
        if self.guard is not None:
            self.limit = self.guard.reach(self.pages.get("progress"), summary)

    def advance(self, summary: Any, said: Sequence[Said] = ()) -> Outputs:
        """The batch is complete and had this summary, and these promises, over all of its parts."""
        linear, limit = self.linear(), self.limit
        said = [s for s in said if self._forbids(s, linear) is None and (limit is None or s.at <= limit)]
        self.limit = None
        state = self.tracker.advance(self.pages.get("progress"), summary)
        self.pages.put("progress", state)
        self._forget_passed()
        yield from self.pass_on(self.tracker.bound(state))
        for each in said:
            yield from self._promised(each.promise)


def _of_groups(kinds: np.ndarray, linear: np.ndarray, held: np.ndarray) -> np.ndarray:
    """The bound that condemns each row: data by what is promised of its group too, a promise by nothing so far."""
    judged = np.where(kinds == DATA, np.maximum(linear, held), linear)
    return np.where(kinds == GROUPWISE, MIN_TICK, judged)


def _spread(admitted: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Of all rows, those that are not refused, if only some were judged."""
    mask = np.ones(len(taken), np.bool_)
    mask[taken] = admitted
    return mask
