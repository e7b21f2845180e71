"""Which attributes of what comes out of a node progress, and which bounds on them somebody can use.

A window can stand on any attribute that progresses. A stream declares its own; they survive where their columns pass
through as they are: selections, lookups, projections that keep or rename them, unions of streams in which both have
them in the same place, duplicate elimination, which leaves rows out. A join has the attributes by which its rows are
near each other, and the later of the two times. Whatever else keeps rows back or makes new ones (windows, merges,
numbering, settling) has its time alone.

Besides there are columns that are computed from an attribute and rise with it (`plan/monotone.py`). No bounds are sent
for them: where rows are windowed by one, a projection makes it the time, computed from the attribute anew, and maps
bounds on that. The least of several attributes, as `least(a.ts, b.ts)` after a join, is another matter: what it is
computed from need not be there where it is windowed by. So a projection that computes it sends bounds on it.

A consumer that reads bounds of one attribute has no use for those of others (thesis 8.1, the Describe idea): a window
for those of the attribute it stands on. Where the rows of a stream are the result, bounds on all of them are of use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.plan.aggregate_nodes import WindowAggregate
from penstock.plan.expressions import Call, Column, Expression, columns_in, renamed, substitute
from penstock.plan.monotone import rises_with_all, stretches, turns
from penstock.plan.nodes import (
    Distinct,
    Join,
    Lookup,
    Merge,
    MultiJoin,
    Node,
    NumberRows,
    Project,
    RowNumber,
    Select,
    Settle,
    Source,
    Stamp,
    Union,
    Unnest,
)
from penstock.plan.useful import EVERY, Useful, useful_below
from penstock.plan.windows import SlidingWindow

Wanted = dict[str, Useful]
"""Per attribute that somebody can use bounds of, the step and origin of those that are of use."""


def progressing(node: Node) -> tuple[str, ...]:
    """The attributes that progress, the time first."""
    found = _attributes(node)
    time = node.schema.time
    return (*((time,) if time is not None else ()), *(name for name in found if name != time))


def _attributes(node: Node) -> tuple[str, ...]:
    match node:
        case Source():
            return node.schema.attributes
        case Select(input=below) | Unnest(input=below):
            return progressing(below)
        case Distinct(input=below) if node.schema.lives is None:
            return progressing(below)
        case Project(input=below, columns=columns):
            known = set(progressing(below))
            earliest = firsts(node)
            return tuple(n for n, e in columns if n in earliest or (isinstance(e, Column) and e.name in known))
        case Lookup(input=below):
            return tuple(node.called[name] for name in progressing(below))
        case Join() | MultiJoin():
            return node.attributes
        case Union(branches=branches):
            places = [{b.schema.index(name) for name in progressing(b)} for b in branches]
            return tuple(node.schema.names[at] for at in sorted(set.intersection(*places)))
        case _:
            return ()


def firsts(node: Project) -> dict[str, tuple[str, ...]]:
    """The columns of a projection that are the least of several attributes which progress below it, with these."""
    known = set(progressing(node.input))
    computed = {n: rises_with_all(e) for n, e in node.columns if isinstance(e, Call) and e.name == "least"}
    return {name: of for name, of in computed.items() if len(of) > 1 and set(of) <= known and name != node.time}


def derived(node: Node, expression: Expression) -> Expression | None:
    """An expression over the output of a node as one over an attribute that progresses there, with which it rises."""
    known, found = progressing(node), _with_time_of_pairs(node, expression)
    for name in columns_in(found):
        if name not in known:
            of_name = _derived_column(node, name)
            if of_name is None:
                return None
            found = substitute(found, {**{c: Column(c, node.schema[c].type) for c in columns_in(found)}, name: of_name})
    rising = rises_with_all(found)
    return found if rising and all(name in known for name in rising) else None


def _with_time_of_pairs(node: Node, expression: Expression) -> Expression:
    """The same with the later of the two times of pairs called what it is: their time."""
    while isinstance(node, Select):
        node = node.input
    if not isinstance(node, Join) or not node.is_of_pairs or not isinstance(expression, Call):
        return expression
    if expression.name == "greatest" and columns_in(expression) == set(node.named_times) and len(expression.args) == 2:
        return Column(node.time_name, expression.type)
    return replace(expression, args=tuple(_with_time_of_pairs(node, arg) for arg in expression.args))


def _derived_column(node: Node, name: str) -> Expression | None:
    match node:
        case Unnest() if any(part.name == name for part in node.parts):
            return None
        case Select(input=below) | Unnest(input=below):
            return derived(below, Column(name, below.schema[name].type))
        case Lookup(input=below):
            own = {called: name for name, called in node.called.items()}
            of_name = derived(below, Column(own[name], below.schema[own[name]].type)) if name in own else None
            return None if of_name is None else renamed(of_name, node.called)
        case Project(input=below, columns=columns):
            found = derived(below, dict(columns)[name])
            kept = {e.name: called for called, e in columns if isinstance(e, Column)}
            if found is None or not columns_in(found) <= kept.keys():
                return None
            return renamed(found, kept)
        case Union(branches=branches):
            at, names = node.schema.index(name), node.schema.names
            each = [derived(b, Column(b.schema.names[at], b.schema.fields[at].type)) for b in branches]
            places = [dict(zip(b.schema.names, names, strict=True)) for b in branches]
            alike = {None if e is None else renamed(e, own) for e, own in zip(each, places, strict=True)}
            return alike.pop() if len(alike) == 1 else None
        case _:
            return None


def distance(node: Node, name: str) -> tuple[str, int] | None:
    """The attribute from which a column is always the same number of ticks away, and how many; None if none is known.

    Such are the start of a window, beside its end, and the instant of a window of one tick that is grouped by.
    """
    if name in progressing(node):
        return name, 0
    match node:
        case Unnest() if any(part.name == name for part in node.parts):
            return None
        case Select(input=below) | Unnest(input=below):
            return distance(below, name)
        case WindowAggregate(window=SlidingWindow() as window, keys=keys):
            if name == "window_start":
                return str(node.schema.time), -window.range
            is_instant = name == window.attribute and name in keys and window.range == window.slide == 1
            return (str(node.schema.time), -1) if is_instant else None
        case RowNumber(window=SlidingWindow() as window, bounds=(start, _)):
            if name == start:
                return str(node.schema.time), -window.range
            return (str(node.schema.time), -1) if name == window.attribute and window.range == 1 else None
        case Project(input=below, columns=columns):
            moved = stretches(dict(columns)[name])
            found = distance(below, moved.attribute) if moved is not None and moved.length == 1 else None
            if moved is None or found is None:
                return None
            kept = [c for c, e in columns if isinstance(e, Column) and e.name == found[0] and c in progressing(node)]
            return (kept[0], found[1] + moved.shift) if kept else None
        case _:
            return None


def follows_time(plan: Node) -> bool:
    """Whether the time of the results is on the scale of the streams' own times."""
    moved = [n for n in plan.walk() if isinstance(n, Project) and (n.moves_time or n.maps_time)]
    return not moved and not any(isinstance(n, NumberRows) and not n.keeps_time for n in plan.walk())


def wanted_above(plan: Node) -> Wanted:
    """What whoever is given the result can use: every bound on what progresses."""
    return dict.fromkeys(progressing(plan), EVERY)


def wanted_below(node: Node, port: int, above: Wanted) -> Wanted:
    """The bounds on attributes of an input that a node, or somebody above it, can use."""
    below = node.inputs[port]
    time = str(below.schema.time)
    match node:
        case Select() | Unnest():
            return above
        case Distinct() if node.schema.lives is None:
            return {**above, time: EVERY}
        case Project(columns=columns):
            found: Wanted = {}
            for name, expression in columns:
                if name in above and isinstance(expression, Column):
                    found[expression.name] = _either(found.get(expression.name), above[name])
            for name, attributes in firsts(node).items():
                if name in above:
                    found |= dict.fromkeys(attributes, EVERY)
            if node.maps_time:
                of_time = dict(columns)[node.time]
                found |= dict.fromkeys(rises_with_all(of_time), turns(of_time))
            elif not node.moves_time and node.time in above:
                found[time] = above[node.time]
            return found
        case Union():
            names = dict(zip(node.schema.names, below.schema.names, strict=True))
            return {names[name]: useful for name, useful in above.items()}
        case Lookup():
            return {own: above[name] for own, name in node.called.items() if name in above}
        case Join() | MultiJoin():
            return dict.fromkeys([time, node.on[port]], EVERY)
        case Merge() | NumberRows() | Settle() | Stamp():
            return {time: EVERY}
        case _:
            return {time: useful_below(node, above.get(str(node.schema.time), EVERY))}


def read_by_time(plan: Node) -> set[str]:
    """The streams, by their names in lower case, of which some part of a plan can use bounds on their time."""

    def visit(node: Node, above: Wanted) -> Iterator[str]:
        if isinstance(node, Source) and not node.by_arrival and node.schema.time in above:
            yield node.name.lower()
        for port, below in enumerate(node.inputs):
            yield from visit(below, wanted_below(node, port, above))

    return set(visit(plan, wanted_above(plan)))


def _either(one: Useful | None, other: Useful) -> Useful:
    """What is of use to two consumers."""
    return other if one is None or one == other else EVERY
