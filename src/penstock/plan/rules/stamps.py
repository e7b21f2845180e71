"""Where rows of latent streams are given their time: below the first operator that needs one (Stream Mill, section 4).

Selections, projections, what repeats rows, and unions of latent streams alone pass rows on at once, as long as they do
not read the time. Whatever else reads a latent stream needs a time: windows, joins, patterns, duplicate elimination,
lookups, a union with a stream that has a time, an expression over the column of the time, a second copy of it, and a
result that shows it. Numbering by arrival needs none. A result without a time needs none either: its rows are known by
when they entered.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.expressions import Column, columns_in
from penstock.plan.nodes import Node, NumberRows, Project, Select, Source, Stamp, Union, Unnest


def stamped_where_needed(plan: Node) -> Node:
    """The plan in which whoever needs a time is given rows that have one."""
    if not any(isinstance(node, Source) and node.latent for node in plan.walk()):
        return plan
    made = plan.transform(_stamp_below)
    return Stamp(made) if is_latent(made) and made.schema.time in {f.name for f in made.schema.visible} else made


def is_latent(node: Node) -> bool:
    """Whether what comes out has no time so far."""
    match node:
        case Source():
            return node.latent
        case Select() | Project() | Unnest():
            return is_latent(node.inputs[0])
        case Union():
            return all(map(is_latent, node.inputs))
        case _:
            return False


def _stamp_below(node: Node) -> Node:
    """The inputs of a node that needs their time, with one; those below were looked at before."""
    latent = [is_latent(below) for below in node.inputs]
    if not any(latent) or (all(latent) and not _needs_time(node)):
        return node
    return node.with_inputs(*(Stamp(i) if is_one else i for i, is_one in zip(node.inputs, latent, strict=True)))


def _needs_time(node: Node) -> bool:
    below = node.inputs[0].schema
    match node:
        case Select(predicate=predicate):
            return below.time in columns_in(predicate)
        case Project(columns=columns, time=time):  # a copy of the time under another name is no longer the time
            passes = dict(columns)[time] == Column(str(below.time), below[below.time].type)
            return not passes or any(below.time in columns_in(e) for name, e in columns if name != time)
        case Unnest(column=column):
            return below.time == column
        case Union():
            return False
        case NumberRows(keeps_time=keeps_time):
            return keeps_time
        case _:
            return True


def latent_source(source: Source) -> Source:
    """A stream of which nothing is late, and of which no bound but the end is known."""
    return replace(source, by_arrival=True, latent=True)


def stamped_at_entry(plan: Node) -> Node:
    """The plan where rows go from end to end at one time, as in a micro-batch: who needs a time has that of the entry.

    So a latent stream of which some operator needs the time is one whose rows are stamped as they enter.
    """
    needed = {
        source.name
        for stamp in plan.walk()
        if isinstance(stamp, Stamp)
        for source in stamp.walk()
        if isinstance(source, Source) and source.latent
    }

    def entering(node: Node) -> Node:
        if isinstance(node, Source) and node.name in needed:
            return replace(node, by_arrival=False, latent=False)
        return node.inputs[0] if isinstance(node, Stamp) else node

    return plan.transform(entering) if needed else plan
