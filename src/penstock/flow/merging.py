"""`pk.merge`: one clean stream out of many imperfect replicas, in-process or on Spark.

```python
merged = pk.merge({"site_a": elements_a, "site_b": elements_b})
for element in merged:
    ...
```

Inputs are iterables of elements, in-process queries, or, on Spark, DataFrames. Which algorithm merges them follows from
what is known of them; `explain()` says which and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import MergeError
from penstock.flow.flow import Flow
from penstock.flow.merge_inputs import named_inputs
from penstock.flow.merged_stream import MergedStream
from penstock.model.progress import Progress
from penstock.operators.merge.options import one_of

ELEMENT_COLUMNS = ("vs", "ve", "v_old")
"""Of DataFrames of elements, beside the payload."""
OPTIONS = ("properties", "algorithm", "policy", "lag", "driver", "on_divergence")
LOCAL_OPTIONS = (*OPTIONS, "away", "form", "gives", "single_close")
FRAME_OPTIONS = ("time", "progress", "schema", "elements", "key", *OPTIONS)


def merge(inputs: Any, **options: Any) -> Any:
    """Merge replicas of one logical stream.

    In-process, `inputs` is a list, or a dict by name, of iterables of elements or of in-process queries; the result is
    a `MergedStream`, to iterate over or to feed by hand. Options: `properties` (what is known of the inputs),
    `algorithm` (a stronger one than is needed), `policy` (when the output says what), `lag` (ticks that the output's
    bound stays behind), `driver` (`leading`, `majority` or an input's name), `away` (names of inputs that are not there
    and may attach, of which the driver may be one), `on_divergence` (`report`, `stop` or `ignore`).

    Inputs may be streams of inserts and adjusts, of `Open` and `Close`, or of positive and negative tuples (`Signed`),
    told by the class of their elements or declared: `form="open/close"` for all, or by input in a dict. `gives` is the
    form of the output, by default the one that was declared for all. `single_close=True` says that an open has at most
    one close: then a close comes out with the first input that says it.

    Of DataFrames, the result is a DataFrame, streaming if they are. Options: `time`, `progress` and `schema` as for a
    stream, `key`, and the others of `Flow.merge`. With `elements=True` the DataFrames have columns `vs`, `ve` and
    `v_old` (null for an insert) beside the payload; the result has them too, and as a stream it is a changelog.
    """
    sources = named_inputs(inputs)
    of_frames = all(hasattr(s, "mapInArrow") for s in sources.values())
    known = FRAME_OPTIONS if of_frames else LOCAL_OPTIONS
    unknown = next((o for o in options if o not in known), None)
    if unknown is not None:
        raise MergeError("A merge has no such option.", got=unknown, hint=one_of(unknown, known))
    return _merged_frames(sources, **options) if of_frames else MergedStream(sources, **options)


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
