"""Which columns of its streams a plan reads, so that whoever has them can leave the others out.

A column that nobody reads may be null, whatever its values are. What operators with state keep must not depend on what
is made of it further up, since another query may take it up: so an aggregate reads its keys, its arguments and what
progresses, and every other operator with state reads all columns that it is given. A projection reads what those of its
columns need that are read, and what it computes in any case: computing may fail, which is told of the row.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model.progress import PerSource, Punctuated, Several
from penstock.plan.expressions import Column, columns_in
from penstock.plan.nodes import GroupAggregate, Node, Project, Select, Source, Unnest, WindowAggregate


def read_below(node: Node, read: frozenset[str]) -> frozenset[str]:
    """The columns of each input that a node reads, of whose own columns `read` are read."""
    below = frozenset(name for each in node.inputs for name in each.schema.names)
    match node:
        case Select(predicate=predicate):
            return (read | columns_in(predicate) | _progressing(node.input)) & below
        case Unnest(column=column):
            return (read | {column} | _progressing(node.input)) & below
        case Project(columns=columns, time=time):
            needed = [e for name, e in columns if name in read or name == time or not isinstance(e, Column)]
            return _progressing(node.input).union(*map(columns_in, needed)) & below
        case WindowAggregate() | GroupAggregate():
            of_window = node.window.columns if isinstance(node, WindowAggregate) else ()
            arguments = [name for call in node.aggregates for name in call.columns]
            return _progressing(node.input).union(node.keys, arguments, of_window)
        case _:
            return below


def read_of(plan: Node, stream: str) -> frozenset[str]:
    """The columns of a stream that a plan reads; all, if its rows say themselves how far it has come."""
    found: frozenset[str] = frozenset()
    for source, read in _sources(plan, frozenset(plan.schema.names)):
        if source.name.lower() == stream.lower():
            found |= read | _judged(source)
    return found


def _sources(node: Node, read: frozenset[str]) -> Iterator[tuple[Source, frozenset[str]]]:
    if isinstance(node, Source):
        yield node, read
    for below in node.inputs:
        yield from _sources(below, read_below(node, read) & frozenset(below.schema.names))


def _progressing(node: Node) -> frozenset[str]:
    """What bounds may be given of: it is compared with them wherever it is."""
    schema = node.schema
    return frozenset(schema.attributes) if schema.time is None else frozenset((schema.time, *schema.attributes))


def _judged(source: Source) -> frozenset[str]:
    """What the entrance of a stream reads."""
    match source.progress:
        case Punctuated() | Several():
            return frozenset(source.schema.names)
        case PerSource(column=column):
            return frozenset((column,)) | _progressing(source)
        case _:
            return _progressing(source)
