"""Hypothesis strategies for migrations: plans, other plans that say the same, and arrivals under promises.

Values are few and lives overlap, so that joins meet, duplicates are frequent and edges fall together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from penstock.model.tdb import Event
from penstock.model.time import END_OF_TIME
from penstock.reference.snapshot_plans import (
    Count,
    Difference,
    Distinct,
    Input,
    Join,
    Project,
    Select,
    SnapshotPlan,
    Union,
    Window,
)

VALUES = (0, 1)


@dataclass(frozen=True)
class Said:
    """A bound on the starts of what is still to come to a port."""

    port: int
    bound: int


Step = tuple[int, Event] | Said
"""What happens at a port: an event comes, or something is promised."""


def columns(plan: SnapshotPlan, inputs: Sequence[int]) -> int:
    """How many columns a plan has, over inputs with so many."""
    if isinstance(plan, Input):
        return inputs[plan.port]
    if isinstance(plan, Project):
        return len(plan.places)
    if isinstance(plan, Count):
        return len(plan.by) + 1
    if isinstance(plan, Join):
        return columns(plan.left, inputs) + columns(plan.right, inputs)
    if isinstance(plan, Union | Difference):
        return columns(plan.left, inputs)
    assert isinstance(plan, Window | Select | Distinct)
    return columns(plan.input, inputs)


@st.composite
def plans(
    draw: st.DrawFn, inputs: Sequence[int], *, depth: int = 3, kinds: str = "spujdcx", windows: bool = False
) -> SnapshotPlan:
    """A plan of these kinds of operators, by their first letters; `x` is difference, `windows` stand at the inputs."""
    kind = draw(st.sampled_from("i" + kinds)) if depth else "i"
    if kind == "i":
        source = Input(draw(st.integers(0, len(inputs) - 1)))
        return Window(source, draw(st.integers(0, 6))) if windows else source
    below = draw(plans(inputs, depth=depth - 1, kinds=kinds, windows=windows))
    width = columns(below, inputs)
    place = st.integers(0, width - 1)
    if kind == "s":
        return Select(below, draw(place), draw(st.sampled_from([frozenset({0}), frozenset({1}), frozenset({0, 1})])))
    if kind == "p":
        return Project(below, tuple(draw(st.lists(place, min_size=1, max_size=2))))
    if kind == "d":
        return Distinct(below)
    if kind == "c":
        return Count(below, tuple(draw(st.lists(place, max_size=1))))
    other = draw(plans(inputs, depth=depth - 1, kinds=kinds, windows=windows))
    its_width = columns(other, inputs)
    if kind == "j":
        return Join(below, other, tuple(draw(st.lists(st.tuples(place, st.integers(0, its_width - 1)), max_size=1))))
    least = min(width, its_width)
    one, two = (p if n == least else Project(p, tuple(range(least))) for p, n in ((below, width), (other, its_width)))
    return Union(one, two) if kind == "u" else Difference(one, two)


@st.composite
def rewritten(draw: st.DrawFn, plan: SnapshotPlan, inputs: Sequence[int]) -> SnapshotPlan:
    """A plan that says the same, by rules of relational algebra that are applied here and there."""
    made = plan
    for name in ("input", "left", "right"):
        if hasattr(made, name):
            made = replace(made, **{name: draw(rewritten(getattr(made, name), inputs))})  # type: ignore[type-var]
    return _by_rule(made, inputs) if draw(st.booleans()) else made


def _by_rule(plan: SnapshotPlan, inputs: Sequence[int]) -> SnapshotPlan:
    if isinstance(plan, Union):
        return Union(plan.right, plan.left)
    if isinstance(plan, Join):
        return _join_by_rule(plan, inputs)
    if isinstance(plan, Distinct):
        below = plan.input
        if isinstance(below, Join):  # duplicate elimination is pushed down, as in the paper's Fig. 2
            return Join(Distinct(below.left), Distinct(below.right), below.on)
        if isinstance(below, Union):
            return Distinct(Union(Distinct(below.left), below.right))
        return Distinct(plan)
    if isinstance(plan, Select):
        return _select_by_rule(plan, inputs)
    if isinstance(plan, Project) and isinstance(plan.input, Union):
        return Union(Project(plan.input.left, plan.places), Project(plan.input.right, plan.places))
    return plan


def _join_by_rule(plan: Join, inputs: Sequence[int]) -> SnapshotPlan:
    """A left-deep join becomes a right-deep one; any other has its sides exchanged."""
    left = plan.left
    if isinstance(left, Join):
        first, second = columns(left.left, inputs), columns(left.right, inputs)
        lower = tuple((a - first, b) for a, b in plan.on if a >= first)
        upper = tuple((a, second + b) for a, b in plan.on if a < first)
        return Join(left.left, Join(left.right, plan.right, lower), left.on + upper)
    wide, other = columns(left, inputs), columns(plan.right, inputs)
    back = (*range(other, other + wide), *range(other))
    return Project(Join(plan.right, left, tuple((b, a) for a, b in plan.on)), back)


def _select_by_rule(plan: Select, inputs: Sequence[int]) -> SnapshotPlan:
    below = plan.input
    if isinstance(below, Join):
        wide = columns(below.left, inputs)
        if plan.place < wide:
            return replace(below, left=replace(plan, input=below.left))
        return replace(below, right=Select(below.right, plan.place - wide, plan.values))
    if isinstance(below, Union | Difference):
        return replace(below, left=replace(plan, input=below.left), right=replace(plan, input=below.right))
    if isinstance(below, Distinct):
        return Distinct(replace(plan, input=below.input))
    if isinstance(below, Count) and plan.place < len(below.by):
        return replace(below, input=Select(below.input, below.by[plan.place], plan.values))
    return plan


@st.composite
def arrivals(
    draw: st.DrawFn,
    inputs: Sequence[int],
    *,
    most: int = 14,
    longest: int = 8,
    latest: int = 24,
    disorder: int = 6,
    skew: int = 8,
) -> list[Step]:
    """Events with promises among them: out of order, one input behind another, some idle; all end in the end."""
    waits = [draw(st.integers(0, skew)) for _ in inputs]
    event = st.integers(0, len(inputs) - 1).flatmap(lambda port: _event(port, inputs[port], longest, latest))
    events = draw(st.lists(event, max_size=most))
    delays = draw(st.lists(st.integers(0, disorder), min_size=len(events), max_size=len(events)))
    coming = sorted(zip(events, delays, strict=True), key=lambda each: each[0][1][1] + each[1] + waits[each[0][0]])
    steps: list[Step] = []
    told = [-1] * len(inputs)
    for at, (arrival, _) in enumerate(coming):
        steps.append(arrival)
        for port in draw(st.sets(st.integers(0, len(inputs) - 1))):
            left = [e[1] for (own, e), _ in coming[at + 1 :] if own == port]
            most_told = min(left, default=latest + 2 * longest)
            said = min(most_told, draw(st.integers(0, latest + longest)))
            if said > told[port]:
                told[port] = said
                steps.append(Said(port, said))
    return [*steps, *(Said(port, END_OF_TIME) for port in range(len(inputs)))]


@st.composite
def _event(draw: st.DrawFn, port: int, width: int, longest: int, latest: int) -> tuple[int, Event]:
    start = draw(st.integers(0, latest))
    payload = tuple(draw(st.sampled_from(VALUES)) for _ in range(width))
    return port, (payload, start, start + draw(st.integers(1, longest)))
