"""A query that is replaced while it runs: the old plan speaks until the split, the new one from there on.

Both plans are fed. Of the old one's results those that start before the split come out (`until`), of the new one's
those that start at it or later (`since`). So each result comes once, whichever of both is ahead. What comes out is
promised by the old plan while its bound is below the split; when it has reached it, the old plan has said all that it
had to say, and from then on the new one promises. A new result is never below the split, so the split itself is
promised then.

What the new plan gives in one go waits until the old one has had its turn (`release`), so that of results that one
bound lets out the old ones come first. It does not wait for longer: an input of the old plan may be silent for ever.

While nothing of the new plan has come out, what the old one says of times from the split on is kept, and the handover
can be undone (`undo`): then the old plan goes on as if nothing had been. What it costs is a comparison a row, and what
is kept.

Bounds on the time are never said twice. What the old plan had promised of other attributes or of some groups, the new
one may say once more: it does not know that it was said.

Only plain rows are handed over: they live as their plan says, each from its start.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from penstock.errors import InternalError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.migration.since import Since
from penstock.operators.migration.until import Until
from penstock.operators.operator import BoundMemory, Operator, Outputs

OLD, NEW = 0, 1
"""The ports of both plans."""


class Phase(Enum):
    """Who speaks."""

    BOTH = "both"
    NEW = "new"
    """The old plan has said all that it had to say."""
    OLD = "old"
    """It was undone: the new plan is not asked any more."""


class HandoverOperator(Operator):
    """Takes an old plan's results and a new one's, and gives each time's from the one whose it is."""

    ports = 2
    kind = "handover"

    def __init__(self, old: Schema, schema: Schema, split: int, promised: int = MIN_TICK) -> None:
        """The schemas of both plans; `promised` is the bound that was promised before there was a handover."""
        super().__init__(schema)
        self.old = old
        self.split = split
        self.until, self.since = Until(str(schema.time), split), Since(split)
        self.passed_on = BoundMemory()
        if promised > MIN_TICK:
            self.passed_on.advance(self.pages, promised)

    @property
    def phase(self) -> Phase:
        """Who speaks."""
        return Phase(self.pages.get("phase") or Phase.BOTH.value)

    def speak_from(self, time: int) -> None:
        """The old plan has itself taken over at a time, and what it says of times before that is not its own."""
        if time > MIN_TICK:
            self.pages.put("from", time)

    @property
    def spoken_from(self) -> int:
        """From when on the plan speaks that speaks alone now; what another said before is out."""
        found: int | None = self.pages.get("from")
        return self.split if self.phase is Phase.NEW else MIN_TICK if found is None else found

    @property
    def has_begun(self) -> bool:
        """Whether a result of the new plan has come out."""
        return bool(self.pages.get("begun"))

    def bound(self, port: int) -> int:
        """What a plan has promised."""
        found: int | None = self.pages.get(f"bound{port}")
        return MIN_TICK if found is None else found

    def last_promised(self) -> int:
        """The bound that was promised last of what comes out."""
        return self.passed_on.last(self.pages)

    def process(self, port: int, batch: Batch) -> Outputs:
        """Results of either plan."""
        phase = self.phase
        first: int | None = self.pages.get("from") if port == OLD else None
        if first is not None:
            kept = Since(first).cut(batch)
            if kept is None:
                return
            batch = kept
        if port == NEW:
            own = self.since.cut(batch)
            if own is not None and phase is Phase.BOTH:
                self._keep("waiting", own)
            elif own is not None and phase is Phase.NEW:
                yield own
        elif phase is Phase.OLD:
            yield batch
        elif phase is Phase.BOTH:
            own, beyond = self.until.cut(batch)
            if own is not None:
                yield own
            if beyond is not None and not self.has_begun:
                self._keep("beyond", beyond)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """What either plan promises."""
        speaker = {Phase.OLD: OLD, Phase.NEW: NEW}.get(self.phase)
        if self.is_on_time(punctuation):
            if punctuation.value > self.bound(port):
                self.pages.put(f"bound{port}", punctuation.value)
                yield from self._promised()
        elif speaker == port:
            yield punctuation
        elif speaker is None and port == NEW:
            self._keep("said", punctuation)
        elif speaker is None:
            self._keep("told", punctuation)
            said = self.until.promise(punctuation)
            if said is not None:
                yield said

    def _promised(self) -> Outputs:
        """The bound that holds of both; when the old plan's has reached the split, the new one takes over."""
        if self.phase is Phase.BOTH and self.bound(OLD) >= self.split:
            yield from self._taken_over()
        bounds = {
            Phase.BOTH: min(self.bound(OLD), self.split),
            Phase.NEW: max(self.split, self.bound(NEW)),
            Phase.OLD: self.bound(OLD),
        }
        bound = bounds[self.phase]
        if bound > MIN_TICK and self.passed_on.advance(self.pages, bound):
            yield self.output_bound(bound)

    def _taken_over(self) -> Outputs:
        yield from self.release()
        self.pages.put("phase", Phase.NEW.value)
        yield from self._taken("said")
        self._forget("beyond", "told")

    def take_over(self) -> Outputs:
        """The new plan speaks from now on, whatever the old one has promised."""
        if self.phase is Phase.BOTH:
            yield from self._taken_over()

    def release(self) -> Outputs:
        """Give what the new plan has given since the last time; from then on nothing can be undone."""
        waiting = self._taken("waiting")
        if waiting:
            self.pages.put("begun", True)
            self._forget("beyond")
        return waiting

    def undo(self) -> Outputs:
        """The old plan goes on alone: it gives what it has said of times from the split on, and promises again."""
        if self.phase is not Phase.BOTH or self.has_begun:
            raise InternalError("A handover cannot be undone once results of the new plan are out.", where="handover")
        self.pages.put("phase", Phase.OLD.value)
        yield from self._taken("beyond")
        yield from self._taken("told")
        self._forget("waiting", "said")
        yield from self._promised()

    @property
    def is_waiting(self) -> bool:
        """Whether anything waits to be released."""
        return bool(self.pages.get("waiting"))

    def feedback(self, bound: int) -> int | None:
        """The same of both plans."""
        return bound

    # What is kept

    def _keep(self, key: str, element: Batch | Punctuation) -> None:
        kept: list[Batch | Punctuation] = self.pages.get(key) or []
        kept.append(element)
        self.pages.put(key, kept)

    def _taken(self, key: str) -> list[Any]:
        kept = self.pages.get(key) or []
        self._forget(key)
        return kept

    def _forget(self, *keys: str) -> None:
        for key in keys:
            self.pages.delete(key)

    def to_plain(self, key: str, page: Any) -> Any:
        """Rows and promises by what is in them."""
        if key in ("waiting", "beyond"):
            return [list(batch.rows) for batch in page]
        return [[each.bounds, each.constants] for each in page] if key in ("said", "told") else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key in ("waiting", "beyond"):
            schema = self.old if key == "beyond" else self.schema
            return [Batch(schema, [tuple(row) for row in rows]) for rows in data]
        if key in ("said", "told"):
            return [Punctuation(_tuples(bounds), _tuples(constants)) for bounds, constants in data]
        return data


def _tuples(pairs: Any) -> tuple[Any, ...]:
    return tuple((name, value) for name, value in pairs)
