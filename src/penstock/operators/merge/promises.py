"""What a merge promises of some groups: what its inputs promise, less what it may still say of events that it holds.

What every input promises no input contradicts. Under a policy that waits (`half frozen`, `conservative`) with an input
that was named to drive, nothing comes out that this input does not have, so its promises are enough. Under any other an
event may come out at the word of whoever is first, or of whoever leads next; one input's promise is then dropped until
all have made it.

That nobody brings more of a group does not say that the merge is done with it: an event that it holds may still come
out, move or be taken back, and each of these starts no earlier than the event does. So a promise goes on as far as the
oldest event of its groups, and the rest of it waits until the bound of the merge has passed that event. The ordered
merges hold nothing, and wait for nothing.

Cost: a promise, and a bound that has passed an event for which one waits, look at every event that is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.model.elements import Payload, Punctuation, linear
from penstock.model.frontier import Constants, Frontier, carried
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical
from penstock.operators.operator import Outputs
from penstock.operators.state import PROMISES, Pages

WAITING = f"{PROMISES} that wait"
BLOCKED = "blocked"
"""The page with the start of the oldest event for which a promise waits."""
Held = Callable[[int], Iterable[tuple[int, Payload]]]
"""Start and payload of the events that a merge holds, of those that start before a time at least."""


@dataclass(frozen=True)
class MergedPromises:
    """The promises of a merge: `schema` is the output's, `names` says how the columns of each input are called there.

    `driver` is the port of the input whose promises are enough; None where all inputs must promise.
    """

    schema: Schema
    names: Sequence[dict[str, list[str]]]
    driver: int | None = None

    @property
    def attribute(self) -> str:
        """What is bounded: the time of the output."""
        assert self.schema.time is not None
        return self.schema.time

    def take(
        self, pages: Pages, port: int, punctuation: Punctuation, stables: Sequence[int], stable: int, held: Held
    ) -> Outputs:
        """What follows from a punctuation of an input, if the inputs and the output have these bounds now."""
        kept: list[Frontier | None] = [pages.get(f"{PROMISES}{at}") for at in range(len(stables))]
        if punctuation.is_linear:
            if not any(kept):
                return
            promises = [linear(self.attribute, punctuation.value)]
        else:
            promises = [p for p in carried(punctuation, self.names[port]) if not p.is_joint]
        frontiers = [f or Frontier([linear(self.attribute, b)]) for f, b in zip(kept, stables, strict=True)]
        waiting: Frontier = pages.get(WAITING) or Frontier()
        fresh = False
        for promise in promises:
            if frontiers[port].add(promise):
                pages.put(f"{PROMISES}{port}", frontiers[port])
                for met in self._met(promise, port, frontiers):
                    fresh = waiting.add(met) or fresh
        yield from self._pass_on(pages, waiting, stable, held, fresh)

    def _met(self, promise: Punctuation, port: int, frontiers: Sequence[Frontier]) -> list[Punctuation]:
        """What the inputs that count promise together, now that one of them makes a promise."""
        if self.driver is not None:
            return [promise] if port == self.driver and not promise.is_linear else []
        met = [promise]
        for at, other in enumerate(frontiers):
            if at != port:
                met = list(Frontier([both for each in met for both in other.meet(each)]))
        return [each for each in met if not each.is_linear]

    def _pass_on(self, pages: Pages, waiting: Frontier, stable: int, held: Held, fresh: bool) -> Outputs:
        """What can be said now of what waits; a look at events only if that may have changed."""
        blocked: int | None = pages.get(BLOCKED)
        passed = blocked is not None and (blocked < stable or stable == END_OF_TIME)
        if not fresh and not passed:
            return
        said: Frontier = pages.get(PROMISES) or Frontier()
        said.add(linear(self.attribute, stable))
        pending = [promise for promise in waiting if not said.implies(promise)]
        oldest = self._oldest(pending, held)
        left = Frontier()
        for promise in pending:
            least = oldest.get(promise.constants, END_OF_TIME)
            if least < promise.value:
                left.add(promise)
            bound = min(promise.value, least)
            made = Punctuation(((self.attribute, bound),), promise.constants)
            if said.add(made):
                yield made
        pages.put(PROMISES, said)
        starts = [oldest[promise.constants] for promise in left]
        _keep(pages, WAITING, left if starts else None)
        _keep(pages, BLOCKED, min(starts, default=None))

    def _oldest(self, pending: Sequence[Punctuation], held: Held) -> dict[tuple[tuple[str, object], ...], int]:
        """Per constants of a promise, the start of the oldest event that has them."""
        wanted: dict[tuple[str, ...], dict[Constants, Punctuation]] = {}
        for promise in pending:
            columns = tuple([name for name, _ in promise.constants])
            wanted.setdefault(columns, {})[tuple([canonical(value) for _, value in promise.constants])] = promise
        found: dict[tuple[tuple[str, object], ...], int] = {}
        if not wanted:
            return found
        places = {columns: [self.schema.index(name) for name in columns] for columns in wanted}
        for vs, payload in held(max(promise.value for promise in pending)):
            for columns, at in places.items():
                promise_of = wanted[columns].get(tuple([canonical(payload[i]) for i in at]))
                if promise_of is not None:
                    constants = promise_of.constants
                    found[constants] = min(vs, found.get(constants, vs))
        return found


def _keep(pages: Pages, key: str, page: object) -> None:
    if page is None:
        pages.delete(key)
    else:
        pages.put(key, page)
