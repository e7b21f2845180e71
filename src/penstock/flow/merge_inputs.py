"""What may be merged in-process: iterables of elements and queries, by name, and what is known of them together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from penstock.errors import MergeError
from penstock.flow.local import LocalQuery
from penstock.flow.merge_forms import Forms
from penstock.model.forms import Formed
from penstock.model.properties import StreamProperties

ReplicaSource = Iterable[Formed] | LocalQuery
"""What an input of a merge is read from."""
_ANYTHING = StreamProperties(insert_only=False)


def named_inputs(inputs: object) -> dict[str, Any]:
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
        check_source(name, source)
    return named


def names_away(away: object) -> set[str]:
    """The names of inputs that are not there and may come."""
    names = list(away) if isinstance(away, Iterable) and not isinstance(away, str | bytes) else [away]
    if isinstance(away, str) or not all(isinstance(name, str) for name in names):
        raise MergeError("Inputs that are away are a list of names.", got=repr(away)[:200], hint="away=['a']")
    return {str(name) for name in names}


def check_source(name: object, source: object) -> None:
    """Refuse what cannot be read as an input."""
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


def known_of(sources: Mapping[str, ReplicaSource], forms: Forms) -> StreamProperties:
    """What all inputs promise: of queries what was derived through their plans, of bare elements what their form is."""
    found = [
        s.properties if isinstance(s, LocalQuery) else forms.promises(name) or _ANYTHING for name, s in sources.items()
    ]
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


def attribute_of(sources: Iterable[ReplicaSource]) -> str:
    """What the time is called in the bounds of the output."""
    times = {s.schema.time for s in sources if isinstance(s, LocalQuery) and s.schema.time is not None}
    return times.pop() if len(times) == 1 else "vs"


def columns_of(sources: Sequence[ReplicaSource]) -> Sequence[str] | None:
    """What the values of a payload are called, if the inputs have columns."""
    schemas = [s.schema for s in sources if isinstance(s, LocalQuery)]
    return [f.name for f in schemas[0].visible] if schemas and len(schemas) == len(sources) else None


def key_places(columns: Sequence[str] | None, key: frozenset[str] | None) -> tuple[int, ...] | None:
    """Where in a payload the columns of the key are."""
    if key is None or columns is None or not key <= set(columns):
        return None
    return tuple(columns.index(k) for k in sorted(key))


def elements_of(source: ReplicaSource) -> Iterable[Formed]:
    """What an input says."""
    return source.elements() if isinstance(source, LocalQuery) else source
