"""What a plan has promised of its results beside their time, and whether another plan keeps it.

Results may be promised of other attributes than the time (both times of a join), and of some groups alone. Whoever was
told so relies on it, also when another plan takes the place of the one that said it. A column that comes from the same
column of the same stream keeps every promise, since what the stream has promised holds. One that is never further
behind the time of its row than so much keeps what was promised up to that long before the split. Of any other column
nothing is known.
"""

from __future__ import annotations

from penstock.plan.expressions import Column
from penstock.plan.node import Node
from penstock.plan.nodes import Project, Select, Source, Unnest
from penstock.plan.progressing import progressing
from penstock.plan.reach import Endless, behind


def attributes_apart(old: Node, new: Node) -> list[str]:
    """The columns of the new plan under whose names the old one promises, and which are others."""
    names = {*new.schema.names} - {str(old.schema.time)}
    return [name for name in progressing(old) if name in names and not same_origin(old, new, name)]


def are_groups_kept(old: Node, new: Node) -> bool:
    """Whether what the old plan promises of some groups holds of the new one, since its columns are the same."""
    if not old.speaks_of_groups:
        return True
    return all(same_origin(old, new, field.name) for field in old.schema.visible)


def same_origin(old: Node, new: Node, name: str) -> bool:
    """Whether a column of both plans comes from the same column of one stream as it is."""
    found = _origin(old, name)
    return found is not None and found == _origin(new, name)


def _origin(node: Node, name: str) -> tuple[str, str] | None:
    match node:
        case Source():
            return node.name, name
        case Select(input=below):
            return _origin(below, name)
        case Unnest(input=below) if name in below.schema.names and all(part.name != name for part in node.parts):
            return _origin(below, name)
        case Project(input=below, columns=columns):
            kept = dict(columns)[name]
            return _origin(below, kept.name) if isinstance(kept, Column) else None
        case _:
            return None


def most_behind(old: Node, new: Node) -> int | Endless:
    """How long before the split the new plan keeps what the old one promised of columns."""
    found = 0
    for name in attributes_apart(old, new):
        apart = behind(new, name)
        if apart is None:
            return Endless(
                f"the query that runs has promised how far {name} is, and nothing says that of its own {name}",
                new.label,
                "call the column otherwise, or add it as a query of its own",
            )
        found = max(found, apart[1])
    return found
