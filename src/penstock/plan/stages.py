"""Where a plan on Spark is cut: between two cuts rows stay where they are, at a cut they change places.

*Stage* 0 is where rows are read: their stream's entrance judges them, and what has no state goes on from there. From
the first operator with state on, a stage is a set of operators whose rows meet in the same places. An operator joins
the stage of its input if some of what it groups by can be followed down to where that stage's rows came from
(`distribution.follow`): the stage is then spread by that alone, which is right for all in it, and saves a stage. If
nothing can be followed, its input is cut off below it: an *exchange*, which spreads rows by what the operator needs,
starts the next stage. Branches
of a union need not meet, so each keeps the spreading that it has; one that is a stage or more behind is cut off, and
its rows go to the union's stage wherever they are.

A join or a pattern needs all of its inputs spread alike, each by its own columns of those that are to be equal. It
joins the stage of the input that is further on, and of both if they are in the same one, if one of these pairs of
columns can be followed there on both sides; an input that is behind is sent there by the same pairs. If none can, both
inputs are cut off. Times of which one is always as much later than the other are equal, too, and are gone by where no
columns are.
Where nothing is to be equal all pairs must be looked at in one place, and only that is done there.

Before an exchange to an aggregate, rows are brought down to partials of their panes, by whoever sends them. So one
place that all groups go to is given a few numbers, and a group that has most rows is, too.

Not every plan can be cut. The entrance must be able to judge where rows are read, by what a record of the micro-batch
before has to say: promises of some groups are not all in it, a limit to how far rows may be ahead looks at the whole
micro-batch, and rows that are only numbered must all come to one place. Merges, and streams with lives, go by what
their events are, from the entrance on. Those plans are hosted as one stage, behind their entrances.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.model.progress import Punctuated, Several
from penstock.model.schema import Schema
from penstock.plan.distribution import (
    ANY,
    SINGLE,
    Distribution,
    Path,
    at_path,
    by_keys,
    equal_in,
    follow,
    needed,
    needed_at,
)
from penstock.plan.expressions import Expression, calls_users_code, columns_in, substitute
from penstock.plan.nodes import (
    Conflate,
    Distinct,
    GroupAggregate,
    Join,
    Lookup,
    MultiJoin,
    Node,
    NumberRows,
    Pattern,
    Project,
    RowNumber,
    Select,
    Source,
    Union,
    Unnest,
    WindowAggregate,
)
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
    if why_uncut(plan) is not None:
        return None
    found: dict[Path, Exchange] = {}
    top = _placed(plan, (), plan, found)
    if top.stage == 0:  # what has no state ends where it was read; only its progress must be known in one place
        top = _Region(1, {(): ANY})
    found |= {path: Exchange(top.stage, how) for path, how in top.edges.items()}
    return found


def why_uncut(plan: Node) -> str | None:
    """Why a plan cannot be cut, in words; None if it can be."""
    return next((why for node in plan.walk() if (why := _against_cutting(node)) is not None), None)


def _against_cutting(node: Node) -> str | None:
    if node.schema.lives is not None:
        return "rows have lives of their own"
    match node:
        case Source(progress=Several()):
            return f"several attributes of {node.name} progress"
        case Source(progress=Punctuated(per=per)) if per:
            return f"{node.name} promises something of groups"
        case Source(by_arrival=True, latent=False) | NumberRows():
            return "rows are numbered as they arrive"
        case Source(max_ahead=max_ahead) if max_ahead is not None:
            return f"max_ahead of {node.name} looks at all of its rows"
        case Project() if node.maps_time or firsts(node):  # bounds are mapped where the plan is whole
            return "windows stand on a time that is computed"
        case GroupAggregate():
            return "groups without windows wait for what is promised of them"
        case Source() | Select() | Project() | Lookup() | Unnest() | Union():
            return None
        case Distinct() | WindowAggregate() | Join() | MultiJoin() | Pattern() | RowNumber() | Conflate():
            return None
        case _:
            return f"{node.label.split(maxsplit=1)[0]} takes events as they come"


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
        case Join() | MultiJoin() | Pattern():
            return _joined(node, path, below, plan, found)
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


def _joined(
    node: Join | MultiJoin | Pattern, path: Path, below: list[_Region], plan: Node, found: dict[Path, Exchange]
) -> _Region:
    """A join: rows that are equal must meet, of all inputs."""
    stage = max(region.stage for region in below)
    edges = _spread_alike(node, path, below, plan) if stage else None
    for region in below:
        if edges is None or region.stage < stage:
            _cut(region, found)
    if edges is None:
        return _Region(stage + 1, {(*path, port): needed_at(node, port) for port in range(len(below))})
    return _Region(stage, edges)


def _spread_alike(
    node: Join | MultiJoin | Pattern, path: Path, below: list[_Region], plan: Node
) -> dict[Path, Distribution] | None:
    """How the stage of the input that is further on is spread, if that brings together what the join needs."""
    stage = max(region.stage for region in below)
    further = {port: region for port, region in enumerate(below) if region.stage == stage}
    behind = [port for port in range(len(below)) if port not in further]
    pairs = equal_in(node)
    in_one_place = all(_is_single(region) for region in further.values())
    if in_one_place and (not behind or not pairs):
        edges = {edge: how for region in further.values() for edge, how in region.edges.items()}
        return edges | {(*path, port): SINGLE for port in behind}
    spread: list[dict[Path, Expression]] = []
    for pair in pairs:
        at: dict[Path, Expression] = {(*path, port): pair[port] for port in behind}
        for port, region in further.items():
            at |= _followed(plan, (*path, port), pair[port], region, instants=True) or {}
        if at.keys() >= {edge for region in further.values() for edge in region.edges}:
            spread.append(at)
    return {edge: by_keys(each[edge] for each in spread) for edge in spread[0]} if spread else None


def _met(node: Node, path: Path, below: _Region, plan: Node, found: dict[Path, Exchange]) -> _Region:
    """A node of which rows must meet."""
    need, start = needed(node), (*path, 0)
    if below.stage > 0:
        if _is_single(below):
            return below
        spread = [at for key in need.keys if (at := _followed(plan, start, key, below)) is not None]
        if spread:
            return _Region(below.stage, {edge: by_keys(k[edge] for k in spread) for edge in below.edges})
        _cut(below, found)
    return _Region(below.stage + 1, {start: need})


def _is_single(region: _Region) -> bool:
    """Whether all rows of a stage are in one place."""
    return bool(region.edges) and all(how.kind == "single" for how in region.edges.values())


def _followed(
    plan: Node, path: Path, key: Expression, region: _Region, *, instants: bool = False
) -> dict[Path, Expression] | None:
    """What a key of the output of a node is at every edge of its stage; None if it cannot be followed to all of them.

    By a constant all rows would come to one place. And a user's function is asked once: where it is asked for the
    place of a row and again for its group, it may give two answers.
    """
    traced = follow(at_path(plan, path), key, region.edges, path, plainly=True, instants=instants)
    if traced is None or traced.keys() != region.edges.keys():
        return None
    told = all(_varies(at_path(plan, edge), expression) for edge, expression in traced.items())
    return traced if told and not any(map(calls_users_code, traced.values())) else None


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
