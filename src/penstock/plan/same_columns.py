"""Whether a plan gives the columns of another one, and the same plan with just these.

Whoever is given results knows them by the names, types and order of their visible columns, so these must be the same
where one plan takes the place of another. What a column is called may be another thing if that is said: a mapping from
the new plan's names to the old one's. Hidden columns are nobody's business; the time that travels with the rows is.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.schema import Field
from penstock.plan.expressions import Column
from penstock.plan.node import Node
from penstock.plan.nodes import Project


def differences(old: Node, new: Node, mapping: Mapping[str, str] | None = None) -> list[str]:
    """What is other in the columns of a new plan, in words; nothing if it fits."""
    renamed = mapping or {}
    known, wanted = {f.name: f for f in new.schema.visible}, [f.name for f in old.schema.visible]
    found = [f"the mapping names {name}, which the new query has not" for name in renamed if name not in known]
    found += [f"the mapping names {name}, which the result has not" for name in renamed.values() if name not in wanted]
    called = {renamed.get(name, name): field for name, field in known.items()}
    if len(called) < len(known):
        found.append("the mapping gives two columns one name")
    found += [f"{name} is missing" for name in wanted if name not in called]
    found += [f"{name} is new" for name in called if name not in wanted]
    for field in old.schema.visible:
        other = called.get(field.name)
        if other is not None and other.type != field.type:
            found.append(f"{field.name} is {other.type} instead of {field.type}")
    if not found and not renamed and list(called) != wanted:
        found.append(f"the columns are in another order: {', '.join(called)} instead of {', '.join(wanted)}")
    return found or _of_times(old, new, called)


def _of_times(old: Node, new: Node, called: Mapping[str, Field]) -> list[str]:
    time, own = old.schema[str(old.schema.time)], new.schema[str(new.schema.time)]
    if time.type != own.type:
        return [f"results progress by a {own.type} instead of a {time.type}"]
    if not time.hidden and called[time.name].name != own.name:
        return [f"results progress by {'a time that they do not show' if own.hidden else own.name}, not by {time.name}"]
    return []


def fitted(old: Node, new: Node, mapping: Mapping[str, str] | None = None) -> Node:
    """A new plan with the columns of the old one, hidden ones left out but for the time; it must fit."""
    mine = {(mapping or {}).get(f.name, f.name): f for f in new.schema.visible}
    time = str(old.schema.time)
    wanted = [field for field in old.schema.fields if not field.hidden or field.name == time]
    own = new.schema[str(new.schema.time)]
    given = [(f.name, own if f.name == time else mine[f.name]) for f in wanted]
    same = [(field.name, field.hidden) for field in new.schema.fields] == [(f.name, f.hidden) for f in wanted]
    if same and all(name == field.name for name, field in given) and new.schema.time == old.schema.time:
        return new
    hidden = frozenset([time]) if old.schema[time].hidden else frozenset[str]()
    return Project(new, tuple((name, Column(field.name, field.type)) for name, field in given), time, hidden)
