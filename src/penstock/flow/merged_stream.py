"""A merge in-process, as `pk.merge` gives it: iterated over, or fed by hand.

Inputs attach, detach and begin again while it runs. An input whose source fails, or stops without having ended, leaves
if another one can go on without it. Where an input differs from the output is told (`divergences`). Elements of other
forms than inserts and adjusts are read as they come (`merge_forms`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.errors import DivergenceError, MergeError
from penstock.flow.local import LocalQuery
from penstock.flow.merge_forms import NOT_ELEMENTS, OUTPUT, Forms
from penstock.flow.merge_inputs import (
    ReplicaSource,
    attribute_of,
    check_source,
    columns_of,
    elements_of,
    key_places,
    known_of,
    named_inputs,
    names_away,
)
from penstock.flow.merge_state import opened, sealed
from penstock.flow.replicas import check_schemas
from penstock.model.elements import Adjust, Element, Insert
from penstock.model.forms import Formed
from penstock.model.likeness import EXACT_TYPES
from penstock.model.properties import StreamProperties
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical_row
from penstock.operators.merge.base import Input, LogicalMerge, MergeCounts, Misstep
from penstock.operators.merge.choose import choose
from penstock.operators.merge.divergence import KEPT, PATIENCE, Divergence, Reaction, Watch
from penstock.operators.merge.measures import MergeStatistics, measures_alone
from penstock.operators.merge.options import check_options, check_properties, needs_index
from penstock.operators.merge.ordered import R2, OrderedMerge
from penstock.operators.merge.policies import Policy
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.revisable import LEADING, RevisableMerge
from penstock.operators.merge.trail import Trail
from penstock.runtime.pulling import Exhausted, Pulling

DEFAULT_POLICY = "first seen"
FIRST_CLOSE = "first close"
"""Where an open has at most one close, what it is closed with first is its end."""
_log = logging.getLogger("penstock.merge")


class MergedStream:
    """A merge in-process: iterate over it, or push elements and take what comes."""

    def __init__(
        self,
        inputs: Mapping[str, ReplicaSource] | Sequence[ReplicaSource],
        *,
        properties: StreamProperties | None = None,
        algorithm: str | None = None,
        policy: str | Policy = DEFAULT_POLICY,
        lag: int = 0,
        driver: str = LEADING,
        away: Iterable[str] = (),
        on_divergence: Reaction = "report",
        patience: int = PATIENCE,
        limit: int | None = KEPT,
        columns: Sequence[str] | None = None,
        form: str | Mapping[str, str] | None = None,
        gives: str | None = None,
        single_close: bool = False,
    ) -> None:
        """Made by `pk.merge`; the alarm keeps so many decided events, and so many divergences if they are limited.

        `columns` names the values of a payload, where the sources do not.
        """
        named = named_inputs(inputs)
        self._forms = Forms(form, gives, single_close)
        if single_close and policy == DEFAULT_POLICY:
            policy = FIRST_CLOSE
        check_properties(properties)
        self._away = names_away(away)
        """Inputs that are not there and may come: one of them may be the driver."""
        check_options({*named, *self._away}, policy, lag, driver, on_divergence)
        check_schemas({n: s.schema for n, s in named.items() if isinstance(s, LocalQuery)})
        self._sources: dict[str, ReplicaSource] = named
        self._pulling: Pulling[Formed] | None = None
        self._pending: list[Any] = []
        self._missteps: deque[Misstep] = deque(maxlen=KEPT)
        """As many are kept as divergences are; all are counted."""
        self.failures: dict[str, BaseException] = {}
        """Inputs whose source failed, or stopped without having ended; they have left."""
        self.properties = properties or known_of(named, self._forms)
        self.choice = choose(self.properties, algorithm, needs_index(policy, DEFAULT_POLICY, lag, driver))
        self._asked = (policy, lag, driver, on_divergence)
        self._patience, self._limit, self._columns = patience, limit, columns
        self.merge = self._build(*self._asked)

    def _build(self, policy: str | Policy, lag: int, driver: str, on_divergence: Reaction) -> LogicalMerge:
        kind = self.choice.algorithm
        options: dict[str, Any] = {"attribute": attribute_of(self._sources.values())}
        if issubclass(kind, RevisableMerge):
            options |= {"policy": policy, "lag": lag, "driver": driver}
        if issubclass(kind, R2 | R3):
            options["key"] = key_places(self._columns or columns_of(list(self._sources.values())), self.properties.key)
        if on_divergence != "ignore":
            alarm = Trail if issubclass(kind, OrderedMerge) else Watch
            options["watch"] = alarm(on_divergence, self._patience, self._limit)
        return kind(self._sources, **options)

    def explain(self) -> str:
        """Which algorithm merges the inputs, and why."""
        merge = self.merge
        lines = [f"Merge {', '.join(merge.inputs)}", f"   {self.choice}"]
        if isinstance(merge, RevisableMerge):
            lag = f", {merge.lag} ticks behind" if merge.lag else ""
            lines.append(f"   policy {merge.policy.name}, bounds by {merge.driver}{lag}")
        lines.append(f"   {', '.join(self.properties.describe())}")
        if self._forms.writer is not None:
            lines.append(f"   gives {self._forms.gives}{', each open closed once' if self._forms.single_close else ''}")
        return "\n".join(lines)

    def __iter__(self) -> Iterator[Any]:
        """Read every input to its end, each as fast as it comes: whoever is first, wins.

        An input whose source fails, or stops without having ended, leaves the merge if another one can go on without
        it (`failures` has the errors).
        """
        pulling: Pulling[Formed] = Pulling()
        self._pulling = pulling
        for name, source in self._sources.items():
            pulling.add(name, elements_of(source))
        try:
            for name, item in pulling:
                if isinstance(item, Exhausted):
                    yield from self._left(name, item.error)
                elif name in self.merge.inputs:
                    yield from self.push(name, item)
                yield from self._flush()
            self._tell_held_back()
        finally:
            pulling.close()
            self._pulling = None

    def _left(self, name: str, error: BaseException | None) -> list[Any]:
        """A source is exhausted; one that has not ended has left."""
        each = self.merge.inputs.get(name)
        if error is not None:
            self.failures[name] = error
            _log.warning("input %s of a merge failed: %r", name, error)
        if each is None or each.stable == END_OF_TIME:
            return []
        if error is None:
            self.failures[name] = MergeError(
                "The input stopped without having ended.",
                where=name,
                got="no bound" if each.stable == MIN_TICK else f"its last bound is {each.stable}",
                hint=f"a whole stream ends with linear({self.merge.attribute!r}, pk.END_OF_TIME)",
            )
        try:
            said = self.merge.detach(name)
        except DivergenceError:
            raise
        except MergeError:
            if error is None:
                return []  # the others have said all that they had
            raise MergeError(
                "A source failed, and no other input can go on without it.",
                where=name,
                got=repr(error),
                hint="put the source right and merge again; a replica that has joined would stand in for it",
            ) from error
        self._away.add(name)
        self._forms.forget(name)
        return self._written(said)

    def _tell_held_back(self) -> None:
        """Every source is exhausted: what the output still holds back, since no bound released it, is not silent."""
        held = self.merge.held_back() + self._forms.held_back
        if held:
            _log.warning(
                "a merge holds back %d events: every input stopped, and none has ended (%s)",
                held, ", ".join(self.failures) or "no input is left",
            )  # fmt: skip

    def _flush(self) -> list[Any]:
        said, self._pending = self._pending, []
        return said

    # By hand

    def push(self, name: str, element: Formed) -> list[Any]:
        """Take one element of an input; what the output is to say."""
        if not self._forms.active and type(element) not in NOT_ELEMENTS:
            return self._push(name, element)  # type: ignore[arg-type]
        self.merge.input_of(name)
        if type(element) in NOT_ELEMENTS:
            element = self._canonical(name, element)
            if element is None:
                return []
        read = self._forms.read(name, element)
        if isinstance(read, str):
            return self._refuse(name, element, read)
        return self._written([said for each in read for said in self._push(name, each)])

    def _push(self, name: str, element: Element) -> list[Element]:
        """Take an insert, an adjust or a bound."""
        kind = type(element)
        if kind is Insert or kind is Adjust:
            payload = element.payload  # type: ignore[union-attr]
            if not MIN_TICK <= element.vs <= element.ve <= END_OF_TIME:  # type: ignore[union-attr]
                return self._refuse(name, element, "an event beyond the ends of time")
            if not EXACT_TYPES.issuperset(map(type, payload)):
                canonical = self._canonical(name, element)
                if canonical is None:
                    return []
                element = canonical
        try:
            said = self.merge.push(name, element)
        except TypeError:
            if isinstance(name, str):
                raise
            raise MergeError("The name of an input is a text.", got=repr(name)[:200]) from None
        if self.merge.missteps:
            self._missteps += self.merge.missteps
            self.merge.missteps = []
        return said

    def _written(self, said: list[Element]) -> list[Any]:
        """What is said in the form that was asked for; what that form cannot say is told."""
        found, unsaid = self._forms.write(said)
        for adjust, reason in unsaid:
            self.merge.counts.missteps += 1
            self._missteps.append(Misstep(OUTPUT, adjust, reason))
        return found

    def _canonical(self, name: str, element: Any) -> Any:
        """The element with one NaN and one zero; None if its values cannot be compared, which is told."""
        payload = canonical_row(element.payload)
        try:
            hash(payload)
        except TypeError as error:
            self._refuse(name, element, f"a payload that cannot be compared: {error}")
            return None
        return replace(element, payload=payload)

    def _refuse(self, name: str, element: Formed, reason: str) -> list[Any]:
        """Put an element aside that no algorithm can take."""
        self.merge.reject(self.merge.input_of(name), element, reason)  # type: ignore[arg-type]
        self._missteps += self.merge.missteps
        self.merge.missteps = []
        return []

    def attach(self, name: str, source: ReplicaSource | None = None, *, complete_from: int = MIN_TICK) -> list[Any]:
        """A new input; `complete_from` is the time from which on it brings every event that is alive.

        A `source` is read with the others when the merge is iterated over; without one, the input is pushed by hand.
        What the output says thereupon comes with the iteration, or is given back where there is none.
        """
        if isinstance(source, LocalQuery):
            known = {n: s.schema for n, s in self._sources.items() if isinstance(s, LocalQuery)}
            check_schemas({**known, name: source.schema})
        if source is not None:
            check_source(name, source)
        said = self.merge.attach(name, complete_from)
        self._forms.forget(name)
        self._read(name, source)
        return self._said(said)

    def detach(self, name: str) -> list[Any]:
        """An input leaves."""
        said = self.merge.detach(name)
        self._away.add(name)
        self._sources.pop(name, None)
        self._forms.forget(name)
        if self._pulling is not None:
            self._pulling.drop(name)
        return self._said(said)

    def restart(self, name: str, source: ReplicaSource | None = None, *, complete_from: int = MIN_TICK) -> list[Any]:
        """An input begins again: from its beginning, or from a time on; with a source, that is read from now on."""
        if source is not None:
            check_source(name, source)
        said = self.merge.restart(name, complete_from)
        self._forms.forget(name)
        if source is not None and self._pulling is not None:
            self._pulling.drop(name)
        self._read(name, source)
        return self._said(said)

    def follow(self, driver: str) -> list[Any]:
        """Another driver from now on: `leading`, `majority`, or the name of an input, be it there or away."""
        policy, lag, _, on_divergence = self._asked
        if not isinstance(self.merge, RevisableMerge):
            raise MergeError(f"{self.merge.name} follows whoever is furthest ahead.", got=repr(driver)[:200])
        check_options({*self.merge.inputs, *self._away}, policy, lag, driver, on_divergence)
        self._asked = (policy, lag, driver, on_divergence)
        return self._said(self.merge.follow(driver))

    def _read(self, name: str, source: ReplicaSource | None) -> None:
        if source is not None:
            self._sources[name] = source
            if self._pulling is not None:
                self._pulling.add(name, elements_of(source))

    def _said(self, elements: list[Element]) -> list[Any]:
        said = self._written(elements)
        if self._pulling is None:
            return said
        self._pending += said
        return []

    # What is known

    @property
    def inputs(self) -> dict[str, Input]:
        """The inputs, with how far each has come (`stable`), whether it has joined, and from when it is complete."""
        return self.merge.inputs

    @property
    def joined(self) -> dict[str, bool]:
        """Whether each input counts: one that attached late does when the output has come to its time."""
        return {i.name: i.joined for i in self.merge.inputs.values()}

    @property
    def missteps(self) -> list[Misstep]:
        """Elements that their own inputs contradict; they count nowhere. The last thousand of `counts.missteps`."""
        return list(self._missteps)

    @property
    def divergences(self) -> list[Divergence]:
        """Events on which inputs differ from the output, the first thousand."""
        found: list[Divergence] = getattr(self.merge, "divergences", [])
        return found

    @property
    def unchecked(self) -> int:
        """Events that were given up before every input could be compared, since one is too far behind."""
        watch: Watch | Trail | None = getattr(self.merge, "watch", None)
        return 0 if watch is None else watch.unchecked

    def statistics(self) -> MergeStatistics:
        """What is alive, how far the inputs have come and what has come out, see `MergeStatistics`."""
        return measures_alone(self.merge)

    @property
    def counts(self) -> MergeCounts:
        """Elements in and out; adjusts out are the chattiness."""
        return self.merge.counts

    @property
    def stable(self) -> int:
        """How far the output has come."""
        return self.merge.stable

    @property
    def ended(self) -> bool:
        """Whether the output has said its last."""
        return self.merge.ended

    def behind(self) -> dict[str, int]:
        """Feedback: for each input that is behind the output, the time before which what ends is no longer needed.

        An input that has been told may skip it; the alarm does not miss it.
        """
        return self.merge.behind()

    # State

    def snapshot(self) -> bytes:
        """The state of the merge as plain data; inputs go on from the next element."""
        return sealed(self.merge, self._forms, self._pending, list(self._missteps))

    def restore(self, snapshot: bytes) -> list[Any]:
        """Take up the state of a snapshot of the same merge; the driver may be another one, which is then followed.

        What the output says thereupon comes with the iteration, or is given back where there is none.
        """
        found = opened(snapshot, self._build(*self._asked), self._forms, set(self.merge.inputs))
        found.take_up_forms()
        self.merge, self._pending, self._missteps = found.merge, found.pending, deque(found.missteps, maxlen=KEPT)
        if isinstance(self.merge, RevisableMerge) and found.driver != self.merge.driver:
            return self._said(self.merge.follow(self.merge.driver))
        return []
