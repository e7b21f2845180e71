"""`pk.merge`: one clean stream out of many imperfect replicas, in-process or on Spark.

```python
merged = pk.merge({"site_a": elements_a, "site_b": elements_b})
for element in merged:
    ...
```

Inputs are iterables of elements, in-process queries, or, on Spark, DataFrames. Which algorithm merges them follows from
what is known of them; `explain()` says which and why. In-process a merge can also be fed by hand (`push`), and inputs
attach, detach and begin again while it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.algorithms.merge.base import Counts, LogicalMerge, Misstep
from penstock.algorithms.merge.choose import choose
from penstock.algorithms.merge.divergence import Divergence, Reaction, Watch
from penstock.algorithms.merge.operator import ELEMENT_COLUMNS, MergeOperator
from penstock.algorithms.merge.pages import flatten, unflatten
from penstock.algorithms.merge.policies import Policy
from penstock.algorithms.merge.revisable import LEADING, RevisableMerge
from penstock.algorithms.state import open_page, open_snapshot, seal_snapshot
from penstock.errors import CheckpointError, MergeError
from penstock.flow.flow import Flow
from penstock.flow.local import LocalQuery
from penstock.model.elements import Adjust, Element, Insert
from penstock.model.progress import Progress
from penstock.model.properties import StreamProperties
from penstock.model.time import MIN_TICK
from penstock.model.values import canonical_row

Source = Iterable[Element] | LocalQuery
_ANYTHING = StreamProperties(insert_only=False)


class Merge:
    """A merge in-process: iterate over it, or push elements and take what comes."""

    def __init__(
        self,
        inputs: Mapping[str, Source] | Sequence[Source],
        *,
        properties: StreamProperties | None = None,
        algorithm: str | None = None,
        policy: str | Policy = "first seen",
        lag: int = 0,
        driver: str = LEADING,
        on_divergence: Reaction | None = None,
    ) -> None:
        """Made by `pk.merge`."""
        named = dict(inputs) if isinstance(inputs, Mapping) else {f"input_{i + 1}": s for i, s in enumerate(inputs)}
        if not named:
            raise MergeError("A merge needs at least one input.", hint="pk.merge([a, b])")
        self._sources: dict[str, Source] = named
        self.properties = properties or _known(list(named.values()))
        self.choice = choose(self.properties, algorithm)
        self.merge = self._build(policy, lag, driver, on_divergence)

    def _build(self, policy: str | Policy, lag: int, driver: str, on_divergence: Reaction | None) -> LogicalMerge:
        kind = self.choice.algorithm
        attribute = _attribute(list(self._sources.values()))
        if not issubclass(kind, RevisableMerge):
            if policy != "first seen" or lag or driver != LEADING or on_divergence is not None:
                raise MergeError(
                    f"{self.choice.name} has no policies.",
                    got=f"policy {policy!r}, lag {lag}, driver {driver!r}, on_divergence {on_divergence!r}",
                    hint="ask for algorithm='R3' or 'R4'",
                )
            return kind(self._sources, attribute=attribute)
        options: dict[str, Any] = {"policy": policy, "lag": lag, "driver": driver, "attribute": attribute}
        if on_divergence is not None:
            if self.choice.name != "R3":
                raise MergeError(
                    "Divergence is watched where payload and start are a key.",
                    got=self.choice.name,
                    hint="declare the key with properties=…, or leave on_divergence out",
                )
            options["watch"] = Watch(on_divergence)
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
        """Read every input to its end, an element from each in turn."""
        reading = {name: iter(_elements(source)) for name, source in self._sources.items()}
        while reading:
            for name, elements in list(reading.items()):
                element = next(elements, None)
                if element is None:
                    del reading[name]
                elif name in self.merge.inputs:
                    yield from self.push(name, element)

    # By hand

    def push(self, name: str, element: Element) -> list[Element]:
        """Take one element of an input; what the output is to say."""
        if isinstance(element, Insert | Adjust) and any(isinstance(v, float) for v in element.payload):
            element = replace(element, payload=canonical_row(element.payload))  # NaN is one value, whoever brings it
        return self.merge.push(name, element)

    def attach(self, name: str, *, complete_from: int = MIN_TICK) -> None:
        """A new input; `complete_from` is the time from which on it brings every event that is alive."""
        self.merge.attach(name, complete_from)

    def detach(self, name: str) -> None:
        """An input leaves."""
        self.merge.detach(name)

    def restart(self, name: str, *, complete_from: int = MIN_TICK) -> None:
        """An input begins again: from its beginning, or from a time on."""
        self.merge.restart(name, complete_from)

    # What is known

    @property
    def missteps(self) -> list[Misstep]:
        """Elements that their own inputs contradict; they count nowhere."""
        return self.merge.missteps

    @property
    def divergences(self) -> list[Divergence]:
        """Events on which inputs differ, if `on_divergence` was given."""
        found: list[Divergence] = getattr(self.merge, "divergences", [])
        return found

    @property
    def counts(self) -> Counts:
        """Elements in and out; adjusts out are the chattiness."""
        return self.merge.counts

    @property
    def stable(self) -> int:
        """How far the output has come."""
        return self.merge.stable

    def behind(self) -> dict[str, int]:
        """Feedback: for each input that is behind the output, the time before which what ends is no longer needed."""
        return {i.name: self.merge.stable for i in self.merge.inputs.values() if i.stable < self.merge.stable}

    # State

    def snapshot(self) -> bytes:
        """The state of the merge as plain data; inputs go on from the next element."""
        name = self.choice.name
        content = {"merge": name, "version": MergeOperator.version, "state": flatten(self.merge)}
        return seal_snapshot(content, f"merge {name}")

    def restore(self, snapshot: bytes) -> None:
        """Take up the state of a snapshot of the same merge."""
        saved = open_snapshot(snapshot)
        if saved.get("merge") != self.choice.name:
            raise CheckpointError(
                "The snapshot is of another merge.",
                got=f"{saved.get('merge')} where {self.choice.name} runs" if "merge" in saved else "a query's",
                hint="restore it into a merge with the same algorithm",
            )
        self.merge = open_page(_State, "merge", MergeOperator.kind, saved["version"], saved["state"], where="merge")


class _State:
    """The pages of a merge that is not an operator: one."""

    kind, version = MergeOperator.kind, MergeOperator.version

    @staticmethod
    def to_plain(key: str, page: Any) -> Any:
        """As an operator's."""
        return flatten(page)

    @staticmethod
    def from_plain(key: str, data: Any, version: int) -> Any:
        """As an operator's."""
        return unflatten(data)


def merge(inputs: Any, **options: Any) -> Any:
    """Merge replicas of one logical stream.

    In-process, `inputs` is a list, or a dict by name, of iterables of elements or of in-process queries; the result is
    a `Merge`, to iterate over or to feed by hand. Options: `properties` (what is known of the inputs), `algorithm` (a
    stronger one than is needed), `policy` (when the output says what), `lag` (ticks that the output's bound stays
    behind), `driver` (`leading`, `majority` or an input's name), `on_divergence` (`report` or `stop`).

    Of DataFrames, the result is a DataFrame, streaming if they are. Options: `time`, `progress` and `schema` as for a
    stream, `key`, and the others of `Flow.merge`. With `elements=True` the DataFrames have columns `vs`, `ve` and
    `v_old` (null for an insert) beside the payload, and so has the result; their progress is judged by the time `at`
    that is added.
    """
    sources = list(inputs.values()) if isinstance(inputs, Mapping) else list(inputs)
    if sources and all(hasattr(s, "mapInArrow") for s in sources):
        names = list(inputs) if isinstance(inputs, Mapping) else [f"input_{i + 1}" for i in range(len(sources))]
        return _merged_frames(dict(zip(names, sources, strict=True)), **options)
    return Merge(inputs, **options)


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
        given = _timed_elements(frame) if elements else frame
        flow.stream(name, given, time="at" if elements else str(time), progress=own, schema=schema)
    query: Any = flow.merge("merged", list(frames), elements=elements, **options).query("SELECT * FROM merged")
    return query.df


def _timed_elements(frame: Any) -> Any:
    """Start, end, old end and payload, with the time by which lateness is judged before them."""
    payload = [f"`{c}`" for c in frame.columns if c not in ELEMENT_COLUMNS]
    at = "CASE WHEN v_old IS NULL THEN vs ELSE least(v_old, ve) END AS at"
    return frame.selectExpr(at, *ELEMENT_COLUMNS, *payload)


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


def _elements(source: Source) -> Iterable[Element]:
    return source.elements() if isinstance(source, LocalQuery) else source
