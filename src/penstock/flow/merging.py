"""`pk.merge`: one clean stream out of many imperfect replicas, in-process or on Spark.

```python
merged = pk.merge({"site_a": elements_a, "site_b": elements_b})
for element in merged:
    ...
```

Inputs are iterables of elements, in-process queries, or, on Spark, DataFrames. Which algorithm merges them follows from
what is known of them; `explain()` says which and why. In-process a merge can also be fed by hand (`push`), and inputs
attach, detach and begin again while it runs. Where an input differs from the output is told (`divergences`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from penstock.errors import CheckpointError, DivergenceError, MergeError
from penstock.flow.flow import Flow
from penstock.flow.local import LocalQuery
from penstock.flow.replicas import check_schemas
from penstock.model.elements import Adjust, Element, Insert
from penstock.model.likeness import EXACT_TYPES
from penstock.model.progress import Progress
from penstock.model.properties import StreamProperties
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical_row
from penstock.operators.merge.base import Counts, Input, LogicalMerge, Misstep
from penstock.operators.merge.choose import choose
from penstock.operators.merge.divergence import KEPT, PATIENCE, Divergence, Reaction, Watch
from penstock.operators.merge.operator import MergeOperator
from penstock.operators.merge.options import check_options, check_properties, needs_index, one_of
from penstock.operators.merge.ordered import R2, OrderedMerge
from penstock.operators.merge.pages import differing, flatten, settings_of, unflatten
from penstock.operators.merge.policies import Policy
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.revisable import LEADING, RevisableMerge
from penstock.operators.merge.trail import Trail
from penstock.operators.state import open_page, open_snapshot, seal_snapshot
from penstock.runtime.pulling import Exhausted, Pulling

Source = Iterable[Element] | LocalQuery
_ANYTHING = StreamProperties(insert_only=False)
DEFAULT_POLICY = "first seen"
ELEMENT_COLUMNS = ("vs", "ve", "v_old")
"""Of DataFrames of elements, beside the payload."""
OPTIONS = ("properties", "algorithm", "policy", "lag", "driver", "on_divergence")
LOCAL_OPTIONS = (*OPTIONS, "away")
FRAME_OPTIONS = ("time", "progress", "schema", "elements", "key", *OPTIONS)
_log = logging.getLogger("penstock.merge")


class Merge:
    """A merge in-process: iterate over it, or push elements and take what comes."""

    def __init__(
        self,
        inputs: Mapping[str, Source] | Sequence[Source],
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
    ) -> None:
        """Made by `pk.merge`; the alarm keeps so many decided events, and so many divergences if they are limited.

        `columns` names the values of a payload, where the sources do not.
        """
        named = _named(inputs)
        check_properties(properties)
        self._away = _names_away(away)
        """Inputs that are not there and may come: one of them may be the driver."""
        check_options({*named, *self._away}, policy, lag, driver, on_divergence)
        check_schemas({n: s.schema for n, s in named.items() if isinstance(s, LocalQuery)})
        self._sources: dict[str, Source] = named
        self._pulling: Pulling[Element] | None = None
        self._pending: list[Element] = []
        self._missteps: deque[Misstep] = deque(maxlen=KEPT)
        """As many are kept as divergences are; all are counted."""
        self.failures: dict[str, BaseException] = {}
        """Inputs whose source failed, or stopped without having ended; they have left."""
        self.properties = properties or _known(list(named.values()))
        self.choice = choose(self.properties, algorithm, needs_index(policy, DEFAULT_POLICY, lag, driver))
        self._asked = (policy, lag, driver, on_divergence)
        self._patience, self._limit, self._columns = patience, limit, columns
        self.merge = self._build(*self._asked)

    def _build(self, policy: str | Policy, lag: int, driver: str, on_divergence: Reaction) -> LogicalMerge:
        kind = self.choice.algorithm
        options: dict[str, Any] = {"attribute": _attribute(list(self._sources.values()))}
        if issubclass(kind, RevisableMerge):
            options |= {"policy": policy, "lag": lag, "driver": driver}
        if issubclass(kind, R2 | R3):
            options["key"] = _key_places(self._columns or _columns(list(self._sources.values())), self.properties.key)
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
        return "\n".join(lines)

    def __iter__(self) -> Iterator[Element]:
        """Read every input to its end, each as fast as it comes: whoever is first, wins.

        An input whose source fails, or stops without having ended, leaves the merge if another one can go on without
        it (`failures` has the errors).
        """
        pulling: Pulling[Element] = Pulling()
        self._pulling = pulling
        for name, source in self._sources.items():
            pulling.add(name, _elements(source))
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

    def _left(self, name: str, error: BaseException | None) -> list[Element]:
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
        return said

    def _tell_held_back(self) -> None:
        """Every source is exhausted: what the output still holds back, since no bound released it, is not silent."""
        held = self.merge.held_back()
        if held:
            _log.warning(
                "a merge holds back %d events: every input stopped, and none has ended (%s)",
                held, ", ".join(self.failures) or "no input is left",
            )  # fmt: skip

    def _flush(self) -> list[Element]:
        said, self._pending = self._pending, []
        return said

    # By hand

    def push(self, name: str, element: Element) -> list[Element]:
        """Take one element of an input; what the output is to say."""
        kind = type(element)
        if kind is Insert or kind is Adjust:
            payload = element.payload  # type: ignore[union-attr]
            if not MIN_TICK <= element.vs <= element.ve <= END_OF_TIME:  # type: ignore[union-attr]
                return self._refuse(name, element, "an event beyond the ends of time")
            if not EXACT_TYPES.issuperset(map(type, payload)):
                canonical = self._canonical(name, element)  # type: ignore[arg-type]
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

    def _canonical(self, name: str, element: Insert | Adjust) -> Insert | Adjust | None:
        """The element with one NaN and one zero; None if its values cannot be compared, which is told."""
        payload = canonical_row(element.payload)
        try:
            hash(payload)
        except TypeError as error:
            self._refuse(name, element, f"a payload that cannot be compared: {error}")
            return None
        return replace(element, payload=payload)

    def _refuse(self, name: str, element: Element, reason: str) -> list[Element]:
        """Put an element aside that no algorithm can take."""
        self.merge.reject(self.merge.input_of(name), element, reason)
        self._missteps += self.merge.missteps
        self.merge.missteps = []
        return []

    def attach(self, name: str, source: Source | None = None, *, complete_from: int = MIN_TICK) -> list[Element]:
        """A new input; `complete_from` is the time from which on it brings every event that is alive.

        A `source` is read with the others when the merge is iterated over; without one, the input is pushed by hand.
        What the output says thereupon comes with the iteration, or is given back where there is none.
        """
        if isinstance(source, LocalQuery):
            known = {n: s.schema for n, s in self._sources.items() if isinstance(s, LocalQuery)}
            check_schemas({**known, name: source.schema})
        if source is not None:
            _check_source(name, source)
        said = self.merge.attach(name, complete_from)
        self._read(name, source)
        return self._said(said)

    def detach(self, name: str) -> list[Element]:
        """An input leaves."""
        said = self.merge.detach(name)
        self._away.add(name)
        self._sources.pop(name, None)
        if self._pulling is not None:
            self._pulling.drop(name)
        return self._said(said)

    def restart(self, name: str, source: Source | None = None, *, complete_from: int = MIN_TICK) -> list[Element]:
        """An input begins again: from its beginning, or from a time on; with a source, that is read from now on."""
        if source is not None:
            _check_source(name, source)
        said = self.merge.restart(name, complete_from)
        if source is not None and self._pulling is not None:
            self._pulling.drop(name)
        self._read(name, source)
        return self._said(said)

    def follow(self, driver: str) -> list[Element]:
        """Another driver from now on: `leading`, `majority`, or the name of an input, be it there or away."""
        policy, lag, _, on_divergence = self._asked
        if not isinstance(self.merge, RevisableMerge):
            raise MergeError(f"{self.merge.name} follows whoever is furthest ahead.", got=repr(driver)[:200])
        check_options({*self.merge.inputs, *self._away}, policy, lag, driver, on_divergence)
        self._asked = (policy, lag, driver, on_divergence)
        return self._said(self.merge.follow(driver))

    def _read(self, name: str, source: Source | None) -> None:
        if source is not None:
            self._sources[name] = source
            if self._pulling is not None:
                self._pulling.add(name, _elements(source))

    def _said(self, said: list[Element]) -> list[Element]:
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

    @property
    def counts(self) -> Counts:
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
        content = {
            "merge": settings_of(self.merge),
            "version": MergeOperator.version,
            "state": flatten(self.merge, *self._pending, *self._missteps),
            "pending": len(self._pending),
        }
        return seal_snapshot(content, f"merge {self.choice.name}")

    def restore(self, snapshot: bytes) -> list[Element]:
        """Take up the state of a snapshot of the same merge; the driver may be another one, which is then followed.

        What the output says thereupon comes with the iteration, or is given back where there is none.
        """
        saved = open_snapshot(snapshot)
        fresh = self._build(*self._asked)
        settings: Any = saved.get("merge")
        other = differing(settings, settings_of(fresh)) if isinstance(settings, dict) else ["it is of a query"]
        if other:
            raise CheckpointError(
                "The snapshot is of another merge.",
                got="; ".join(other),
                hint="restore it into a merge with the same algorithm and options",
            )
        state = _State(fresh)
        held = saved.get("state"), saved.get("pending")
        opened = open_page(state, "merge", state.kind, saved.get("version"), held, where="merge")
        self._check_names(opened[0].inputs)
        self.merge, self._pending, self._missteps = opened[0], opened[1], deque(opened[2], maxlen=KEPT)
        if isinstance(self.merge, RevisableMerge) and settings.get("driver") != self.merge.driver:
            return self._said(self.merge.follow(self.merge.driver))
        return []

    def _check_names(self, saved: Iterable[str]) -> None:
        """The state speaks of inputs by name; of others it would know nothing."""
        if set(saved) != set(self.merge.inputs):
            raise CheckpointError(
                "The snapshot is of a merge of other inputs.",
                got=f"inputs {', '.join(self.merge.inputs)}; the snapshot has {', '.join(saved)}",
                hint="make the merge with the inputs of the snapshot (a driver that left: away=[…]) and restore it, "
                "then attach and detach",
            )


class _State:
    """The pages of a merge that is not an operator: one."""

    kind, version = MergeOperator.kind, MergeOperator.version

    def __init__(self, fresh: LogicalMerge) -> None:
        self.fresh = fresh

    def to_plain(self, key: str, page: Any) -> Any:
        """As an operator's."""
        return flatten(page)

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The merge, what it has yet to say, and what was put aside."""
        flat, pending = data
        merge, *beside = unflatten(flat, self.fresh)
        return merge, beside[:pending], beside[pending:]


def merge(inputs: Any, **options: Any) -> Any:
    """Merge replicas of one logical stream.

    In-process, `inputs` is a list, or a dict by name, of iterables of elements or of in-process queries; the result is
    a `Merge`, to iterate over or to feed by hand. Options: `properties` (what is known of the inputs), `algorithm` (a
    stronger one than is needed), `policy` (when the output says what), `lag` (ticks that the output's bound stays
    behind), `driver` (`leading`, `majority` or an input's name), `away` (names of inputs that are not there and may
    attach, of which the driver may be one), `on_divergence` (`report`, `stop` or `ignore`).

    Of DataFrames, the result is a DataFrame, streaming if they are. Options: `time`, `progress` and `schema` as for a
    stream, `key`, and the others of `Flow.merge`. With `elements=True` the DataFrames have columns `vs`, `ve` and
    `v_old` (null for an insert) beside the payload; the result has them too, and as a stream it is a changelog.
    """
    sources = _named(inputs)
    of_frames = all(hasattr(s, "mapInArrow") for s in sources.values())
    known = FRAME_OPTIONS if of_frames else LOCAL_OPTIONS
    unknown = next((o for o in options if o not in known), None)
    if unknown is not None:
        raise MergeError("A merge has no such option.", got=unknown, hint=one_of(unknown, known))
    return _merged_frames(sources, **options) if of_frames else Merge(sources, **options)


def _named(inputs: object) -> dict[str, Any]:
    """The inputs by name; those of a list are numbered."""
    if isinstance(inputs, Mapping):
        named = dict(inputs)
    elif isinstance(inputs, Sequence | Set | Iterator) and not isinstance(inputs, str | bytes):
        named = {f"input_{i + 1}": s for i, s in enumerate(inputs)}
    else:
        raise MergeError("Inputs are a list, or a dictionary by name.", got=repr(inputs)[:200], hint="pk.merge([a, b])")
    if not named:
        raise MergeError("A merge needs at least one input.", hint="pk.merge([a, b])")
    for name, source in named.items():
        _check_source(name, source)
    return named


def _names_away(away: object) -> set[str]:
    names = list(away) if isinstance(away, Iterable) and not isinstance(away, str | bytes) else [away]
    if isinstance(away, str) or not all(isinstance(name, str) for name in names):
        raise MergeError("Inputs that are away are a list of names.", got=repr(away)[:200], hint="away=['a']")
    return {str(name) for name in names}


def _check_source(name: object, source: object) -> None:
    if not isinstance(name, str):
        raise MergeError("The name of an input is a text.", got=repr(name)[:200])
    read = isinstance(source, Iterable) and not isinstance(source, str | bytes | Mapping)
    if not (read or isinstance(source, LocalQuery) or hasattr(source, "mapInArrow")):
        raise MergeError(
            "This cannot be merged.",
            where=name,
            got=type(source).__name__,
            hint="give elements, a query in-process, or DataFrames on Spark alone",
        )


def _merged_frames(
    frames: Mapping[str, Any],
    *,
    time: str | None = None,
    progress: Progress | Mapping[str, Progress] | None = None,
    schema: str | None = None,
    elements: bool = False,
    **options: Any,
) -> Any:
    flow = Flow(next(iter(frames.values())).sparkSession)
    if time is None and not elements:
        raise MergeError("Plain rows need their time.", hint="pk.merge([a, b], time='ts')")
    for name, frame in frames.items():
        own = progress[name] if isinstance(progress, Mapping) else progress
        lives = ELEMENT_COLUMNS if elements else False
        flow.stream(name, frame, time="vs" if elements else str(time), progress=own, schema=schema, lives=lives)
    query: Any = flow.merge("merged", list(frames), elements=elements, **options).query("SELECT * FROM merged")
    return query.df


def _known(sources: list[Source]) -> StreamProperties:
    """What all inputs promise: of queries what was derived through their plans, of bare elements nothing."""
    found = [s.properties if isinstance(s, LocalQuery) else _ANYTHING for s in sources]
    first = found[0]
    same_key = all(f.key == first.key for f in found)
    return StreamProperties(
        ordered=all(f.ordered for f in found),
        strictly_ordered=all(f.strictly_ordered for f in found),
        insert_only=all(f.insert_only for f in found),
        key=first.key if same_key else None,
        deterministic_ties=all(f.deterministic_ties for f in found),
        lifetime=None,
    )


def _attribute(sources: list[Source]) -> str:
    times = {s.schema.time for s in sources if isinstance(s, LocalQuery) and s.schema.time is not None}
    return times.pop() if len(times) == 1 else "vs"


def _columns(sources: list[Source]) -> Sequence[str] | None:
    """What the values of a payload are called, if the inputs have columns."""
    schemas = [s.schema for s in sources if isinstance(s, LocalQuery)]
    return [f.name for f in schemas[0].visible] if schemas and len(schemas) == len(sources) else None


def _key_places(columns: Sequence[str] | None, key: frozenset[str] | None) -> tuple[int, ...] | None:
    """Where in a payload the columns of the key are."""
    if key is None or columns is None or not key <= set(columns):
        return None
    return tuple(columns.index(k) for k in sorted(key))


def _elements(source: Source) -> Iterable[Element]:
    return source.elements() if isinstance(source, LocalQuery) else source
