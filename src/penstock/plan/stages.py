"""Where a plan on Spark is cut: between two cuts rows stay where they are, at a cut they change places.

*Stage* 0 is where rows are read: their stream's entrance judges them, and what has no state goes on from there. From
the first operator with state on, a stage is a set of operators whose rows meet in the same places. An operator joins
the stage of its input if some of what it groups by can be followed down to where that stage's rows came from
(`distribution.follow`): the stage is then spread by that alone, which is right for all in it, and saves a stage. If
nothing can be followed, its input is cut off below it: an *exchange*, which spreads rows by what the operator needs,
starts the next stage. Branches
of a union need not meet, so each keeps the spreading that it has; one that is a stage or more behind is cut off, and
its rows go to the union's stage wherever they are.

Before an exchange to an aggregate, rows are brought down to partials of their panes, by whoever sends them. So one
place that all groups go to is given a few numbers, and a group that has most rows is, too.

Not every plan can be cut. The entrance must be able to judge where rows are read, by what a record of the micro-batch
before has to say: promises of some groups are not all in it, a limit to how far rows may be ahead looks at the whole
micro-batch, and rows that are only numbered must all come to one place. Merges, and streams with lives, go by what
their events are, from the entrance on. Those plans are hosted as one stage, behind their entrances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.model.progress import Punctuated, Several
from penstock.model.schema import Schema
from penstock.plan.distribution import ANY, Distribution, Path, at_path, by_keys, follow, needed
from penstock.plan.expressions import Expression, calls_users_code, columns_in, substitute
from penstock.plan.nodes import Distinct, Lookup, Node, Project, Select, Source, Union, Unnest, WindowAggregate
from penstock.plan.progressing import firsts


@dataclass(frozen=True)
class Exchange:
    """How the output of a node goes to the stage of its consumer."""

    stage: int
    """Of the consumer."""
    distribution: Distribution
    """By what of the sender's columns."""

    def worded(self, schema: Schema) -> str:
        """For `explain`, in the query's words for the sender's columns."""
        return f"to stage {self.stage}, {self.distribution.worded(schema)}"


@dataclass
class _Region:
    """The operators of one stage below a node, by the exchanges that feed them."""

    stage: int
    edges: dict[Path, Distribution] = field(default_factory=dict)


def exchanges(plan: Node) -> dict[Path, Exchange] | None:
    """The nodes whose output changes places, and how; None for a plan that cannot be cut."""
    if not all(_can_be_cut(node) for node in plan.walk()):
        return None
    found: dict[Path, Exchange] = {}
    top = _placed(plan, (), plan, found)
    if top.stage == 0:  # what has no state ends where it was read; only its progress must be known in one place
        top = _Region(1, {(): ANY})
    found |= {path: Exchange(top.stage, how) for path, how in top.edges.items()}
    return found


def _can_be_cut(node: Node) -> bool:
    if node.schema.lives is not None:
        return False
    match node:
        case Source(progress=progress, by_arrival=by_arrival, max_ahead=max_ahead):
            of_groups = isinstance(progress, Punctuated) and bool(progress.per)
            return not (isinstance(progress, Several) or of_groups or by_arrival or max_ahead is not None)
        case Project() if node.maps_time or firsts(node):  # bounds are mapped where the plan is whole
            return False
        case Select() | Project() | Lookup() | Unnest() | Union() | Distinct() | WindowAggregate():
            return True
        case _:
            return False


def _placed(node: Node, path: Path, plan: Node, found: dict[Path, Exchange]) -> _Region:
    """The stage of a node; exchanges that feed a stage are settled once the stage is cut off."""
    below = [_placed(each, (*path, port), plan, found) for port, each in enumerate(node.inputs)]
    match node:
        case Source():
            return _Region(0)
        case Select() | Project() | Lookup() | Unnest():
            return below[0]
        case Union():
            return _united(path, below, found)
        case _:
            return _met(node, path, below[0], plan, found)


def _united(path: Path, below: list[_Region], found: dict[Path, Exchange]) -> _Region:
    stage = max(1, *(region.stage for region in below))
    edges: dict[Path, Distribution] = {}
    for port, region in enumerate(below):
        if region.stage == stage:
            edges |= region.edges
        else:
            _cut(region, found)
            edges[(*path, port)] = ANY
    return _Region(stage, edges)


def _met(node: Node, path: Path, below: _Region, plan: Node, found: dict[Path, Exchange]) -> _Region:
    """A node of which rows must meet."""
    need, start = needed(node), (*path, 0)
    if below.stage > 0:
        if below.edges and all(how.kind == "single" for how in below.edges.values()):
            return below
        spread = list(_followed(plan, start, need, below))
        if spread:
            return _Region(below.stage, {edge: by_keys(k[edge] for k in spread) for edge in below.edges})
        _cut(below, found)
    return _Region(below.stage + 1, {start: need})


def _followed(plan: Node, path: Path, need: Distribution, region: _Region) -> Iterator[dict[Path, Expression]]:
    """What those keys that can be followed are at every edge of a stage.

    By a constant all rows would come to one place. And a user's function is asked once: where it is asked for the
    place of a row and again for its group, it may give two answers.
    """
    node = at_path(plan, path)
    for key in need.keys:
        traced = follow(node, key, region.edges, path, plainly=True)
        if traced is None or traced.keys() != region.edges.keys():
            continue
        told = all(_varies(at_path(plan, edge), expression) for edge, expression in traced.items())
        if told and not any(map(calls_users_code, traced.values())):
            yield traced


def _varies(node: Node, expression: Expression) -> bool:
    """Whether an expression over the output of a node is no constant, as far as projections tell."""
    while columns_in(expression) and isinstance(node, Select | Project):
        if isinstance(node, Project):
            expression = substitute(expression, dict(node.columns))
        node = node.input
    return bool(columns_in(expression))


def _cut(region: _Region, found: dict[Path, Exchange]) -> None:
    """Nothing more joins the stage: what feeds it is settled."""
    found |= {path: Exchange(region.stage, how) for path, how in region.edges.items()}
