"""What a node of a plan is known by: a hash of its canonical form and of all below it.

State is kept under identities, so that neither the wording of a query nor the place of an operator in it matters:
aliases of relations, case, white space and comments are gone once a query is bound, lengths of time are ticks, and of a
stream or a table only what the query reads of it counts, in any order, unless whole rows are kept. The names that
sub-queries give to columns are part of it; what nodes mean without them is in `meaning`, and a checkpoint knows both.
What a node has by default is left out, so that a later release can give nodes more to say without making strangers of
old ones.

Two nodes of one plan that mean the same (`FROM s UNION s`) have state of their own: the second is numbered.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.model.progress import PerSource, Punctuated, Several, Single, span_ticks
from penstock.model.schema import DataType, Schema
from penstock.model.time import Domain
from penstock.plan.expressions import AggregateCall, Call, Column, Expression, Literal, columns_in
from penstock.plan.nodes import (
    AlterLifetime,
    GroupAggregate,
    Lookup,
    Node,
    NumberRows,
    Project,
    Select,
    Source,
    Stamp,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.windows import Window

_UNSAID = frozenset({"why", "as_one"})
"""Fields that explain, or say how to run, and do not mean anything."""
_LENGTHS = frozenset({"delay", "idle", "disorder"})
_OF_SOURCE = frozenset({"name", "fields", "progress", "declared", "max_ahead", "punctuation", "punctuations"})
"""Fields of a source that are looked at one by one."""


@dataclass(frozen=True)
class Known:
    """A node with what it is known by."""

    node: Node
    identity: str
    """Of the node and all below it."""
    own: str
    """Of the node by itself."""
    reads: tuple[str, ...] | None
    """Of a source: the columns that the plan reads; None where whole rows are kept."""


def identities(plan: Node) -> list[Known]:
    """Every node of a plan, consumers first, as `plan.walk()` gives them."""
    found: list[Known] = []
    _identify(plan, None, found)
    unique = numbered([known.identity for known in found])
    return [dataclasses.replace(known, identity=own) for known, own in zip(found, unique, strict=True)]


def numbered(found: Sequence[str]) -> list[str]:
    """The same, but for those that were there before, which are given a number."""
    times: Counter[str] = Counter()
    unique = []
    for each in found:
        times[each] += 1
        unique.append(each if times[each] == 1 else f"{each}.{times[each]}")
    return unique


def _identify(node: Node, wanted: frozenset[str] | None, found: list[Known]) -> str:
    at = len(found)
    found.append(Known(node, "", "", None))
    below = [_identify(i, _wanted_below(node, n, wanted), found) for n, i in enumerate(node.inputs)]
    reads = None
    if isinstance(node, Source):
        columns = _columns_of(node, wanted)
        reads = None if wanted is None else tuple(sorted(columns))
        rest = {name: canonical(held) for name, held in _said(node) if name not in _OF_SOURCE}
        guarded = node.max_ahead is not None  # how far ahead rows may be is no part of the state
        own = ["Source", node.name.lower(), columns, node.schema.time, progress_form(node), guarded, rest]
        own += ["lives"] if node.schema.lives is not None else []  # plain streams stay known by what they were
    elif isinstance(node, Lookup) and wanted is not None:
        own = _lookup_form(node, wanted)
    else:
        own = canonical(node)
    identity = digest([own, below])
    found[at] = Known(node, identity, digest(own), reads)
    return identity


def _lookup_form(node: Lookup, wanted: frozenset[str]) -> Any:
    """What a lookup says of the columns that are wanted: of a table, those that are read of it."""
    rest = {name: canonical(held) for name, held in _said(node) if name not in ("table", "names")}
    table, called = node.table, {**node.called, **{f".{own}": name for own, name in node.called_of_table.items()}}
    brought = {own: name for own, name in called.items() if name in wanted}
    versions = [table.key, table.valid_from, table.valid_to] if node.as_of is not None else []
    types = {name: str(node.pairs[name].type) for name in brought.values()}
    return ["Lookup", table.name.lower(), canonical(versions), brought, types, rest]


def _columns_of(node: Source, wanted: frozenset[str] | None) -> Any:
    """The columns that count, with their types: by name, or in order where whole rows are kept."""
    if wanted is None:
        return [[f.name, str(f.type)] for f in node.schema.fields]
    names = wanted | _for_progress(node) | {str(node.schema.time)}
    return {f.name: str(f.type) for f in node.schema.fields if f.name in names}


def _for_progress(node: Source) -> frozenset[str]:
    if isinstance(node.progress, Several):
        read = [columns_in(p) for p in node.punctuations if p is not None]
        named = [how.column for _, how in node.progress.entries if isinstance(how, PerSource)]
        return frozenset({*node.schema.attributes, *(node.schema[name].name for name in named)}.union(*read))
    if node.punctuation is not None:
        return frozenset(columns_in(node.punctuation)) | {node.schema.fields[i].name for i in node.per}
    column = getattr(node.progress, "column", None)
    return frozenset() if column is None else frozenset({node.schema[column].name})


def _wanted_below(node: Node, port: int, wanted: frozenset[str] | None) -> frozenset[str] | None:
    """The columns that a node and those above it read of an input; None for all, in order."""
    match node:
        case Project():
            return frozenset({node.input.schema.time or ""}.union(*[columns_in(e) for _, e in node.columns]))
        case Select():
            return None if wanted is None else wanted | columns_in(node.predicate)
        case Lookup() if wanted is not None:
            read = wanted | (frozenset() if node.condition is None else columns_in(node.condition))
            own = {name for name, called in node.called.items() if called in read}
            keys = {node.as_of or "", node.input.schema.time or "", *(name for name, _ in node.equal)}
            return frozenset(own | keys)
        case Unnest() if wanted is not None:
            return (wanted - set(node.names)) | {node.column}
        case NumberRows() | AlterLifetime() | Stamp():
            return wanted
        case WindowAggregate():
            arguments = [column for a in node.aggregates for column in a.columns]
            return frozenset({*node.keys, *arguments, *node.window.columns, node.input.schema.time or ""})
        case GroupAggregate():
            arguments = [column for a in node.aggregates for column in a.columns]
            return frozenset({*node.keys, *arguments, node.input.schema.time or ""})
        case Union() if wanted is not None:
            branch = node.branches[port].schema
            return frozenset(branch.fields[node.schema.index(name)].name for name in wanted if name in node.schema)
        case _:
            return None


def progress_form(source: Source) -> Any:
    """What a stream's progress means, however it was written."""
    progress = source.progress
    if not isinstance(progress, Several):
        return _single_form(progress, source.schema.domain, source.punctuation, source)
    forms = []
    for (names, how), condition in zip(progress.entries, source.punctuations, strict=True):
        domain = source.schema[names[0]].type.domain or Domain.INTEGER
        forms.append([list(names), _single_form(how, domain, condition, source)])
    return ["Several", forms]


def _single_form(progress: Single, domain: Domain, punctuation: Expression | None, source: Source) -> Any:
    if isinstance(progress, Punctuated) and punctuation is not None:
        form = ["Punctuated", canonical(punctuation)]
        if progress.per:
            form.append({"per": sorted(source.schema.fields[i].name for i in source.per), "final": progress.final})
        return form
    said: dict[str, Any] = {}
    for name, value in _said(progress):
        said[name] = span_ticks(value, domain) if name in _LENGTHS else canonical(value)
    return [type(progress).__name__, said]


def canonical(value: Any) -> Any:
    """A node without its inputs, an expression, a window or a value, as lists and maps of text and numbers."""
    match value:
        case Column():
            return ["Column", value.name, str(value.type)]
        case Literal():
            return ["Literal", canonical(value.value), str(value.type)]
        case Call():
            return ["Call", value.name, [canonical(a) for a in value.args], str(value.type)]
        case None | bool() | int() | str():
            return value
        case DataType():
            return str(value)
        case Schema():
            return [[f.name, str(f.type), f.hidden] for f in value.fields]
        case Enum():
            return canonical(value.value)
        case tuple() | list():
            return [canonical(v) for v in value]
        case set() | frozenset():
            return sorted((canonical(v) for v in value), key=json.dumps)
        case Mapping():
            return [[canonical(k), canonical(v)] for k, v in value.items()]
        case Node() | Window() | AggregateCall():
            return [type(value).__name__, {name: canonical(held) for name, held in _said(value)}]
        case _ if dataclasses.is_dataclass(value):
            return [type(value).__name__, {name: canonical(held) for name, held in _said(value)}]
        case _:
            return [type(value).__name__, repr(value)]


def _said(value: Any) -> Iterable[tuple[str, Any]]:
    """The fields of a dataclass that say something: no inputs, no explanations, nothing that is so by default."""
    for field in dataclasses.fields(value):
        held = getattr(value, field.name)
        if not field.compare or field.name in _UNSAID or _is_default(field, held):
            continue
        if isinstance(held, Node) or (isinstance(held, tuple) and held and all(isinstance(h, Node) for h in held)):
            continue
        yield field.name, held


def _is_default(field: dataclasses.Field[Any], held: Any) -> bool:
    return field.default is not dataclasses.MISSING and type(held) is type(field.default) and held == field.default


def digest(form: Any) -> str:
    """What a canonical form is known by."""
    text = json.dumps(form, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def expressions_of(node: Node) -> Iterable[Expression]:
    """The scalar expressions of a node, wherever they are in it."""
    for _, held in _said(node):
        yield from _expressions_in(held)


def _expressions_in(held: Any) -> Iterable[Expression]:
    if isinstance(held, Column | Literal | Call):
        yield held
    elif isinstance(held, tuple | list):
        for each in held:
            yield from _expressions_in(each)
