"""Marks for a whole plan: which windows a queue below several aggregates may drop (UpStream, 6.1.3 and footnote 4).

A queue of windows drops windows of the stream below it, and every aggregate above must see none of them broken. So it
is told what the *last* aggregate above needs: a window of that one is an update, together with all windows of the
aggregates below whose results lie in it, and all rows of those (`NestedExtents`). The cost of a window of the plan is
what the load factor and the budget are counted by (`window_cost`).

That is sound where all rows of an update key go the same way: every aggregate groups by the update key, and perhaps by
more; its windows are sliding, on the time of what it reads; between the queue and the last aggregate nothing remembers
rows, which come once for every window that holds them, and nothing brings rows from elsewhere. A plan that is not like
that is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import PlanError
from penstock.model.cached import cached_property
from penstock.operators.queues.extents import Extents, extents_of
from penstock.operators.queues.window_cost import PlanCost, plan_cost
from penstock.operators.windows.sliding import Sliding
from penstock.plan.expressions import Column
from penstock.plan.nodes import Node, Project, Select, Unnest, WindowAggregate
from penstock.plan.windows import SlidingWindow

PASSING = (Select, Project, Unnest)
"""What remembers nothing of the rows that it has seen."""


@dataclass(frozen=True)
class PlanMarks:
    """What a queue and the aggregates above it agree on."""

    path: tuple[Node, ...]
    """All nodes above the queue up to the last aggregate, the one nearest to the queue first."""

    @cached_property
    def aggregates(self) -> tuple[WindowAggregate, ...]:
        """The aggregates, the one nearest to the queue first."""
        return tuple(node for node in self.path if isinstance(node, WindowAggregate))

    @cached_property
    def extents(self) -> Extents:
        """Which windows are updates, and what each needs of the rows in the queue."""
        return extents_of([sliding_of(node) for node in self.aggregates])

    @cached_property
    def cost(self) -> PlanCost:
        """Of one window of the plan, with a row of each key in every tick."""
        return plan_cost(self.extents)


def sliding_of(node: WindowAggregate) -> Sliding:
    """The windows of an aggregate that has been found to be markable."""
    window = node.window
    assert isinstance(window, SlidingWindow)
    return Sliding(window.range, window.slide, window.origin)


def marks_of(plan: Node, queue: Node, key: Sequence[str]) -> PlanMarks:
    """The marks of a plan with a queue of windows on what `queue` puts out, by an update key; or why it has none."""
    path = _path(plan, queue)
    if path is None:
        raise PlanError("The queue is not part of the plan.", where=plan.label, got=queue.label)
    last = max((at for at, node in enumerate(path) if isinstance(node, WindowAggregate)), default=None)
    if last is None:
        raise PlanError(
            "A queue of windows needs an aggregate with windows above it.",
            where=queue.label,
            got=" over ".join(node.label for node in reversed(path)) or "nothing above it",
            hint="queue rows instead of windows, or add [RANGE ..., SLIDE ...]",
        )
    marks = PlanMarks(path[: last + 1])
    _check(marks, queue, tuple(key))
    return marks


def _path(plan: Node, queue: Node) -> tuple[Node, ...] | None:
    """The nodes from above the queue to the plan's last; None if the queue is not in it."""
    if plan is queue:
        return ()
    for below in plan.inputs:
        found = _path(below, queue)
        if found is not None:
            return (*found, plan)
    return None


def _check(marks: PlanMarks, queue: Node, key: tuple[str, ...]) -> None:
    """Whether no aggregate can see a broken window."""
    names = {name: {name} for name in key}
    """What the columns of the update key are called."""
    if queue.schema.lives is not None:
        raise _refused("rows with ends of their own may be revised after their window", queue, "a stream with lives")
    for node in marks.path:
        if isinstance(node, WindowAggregate):
            _check_window(node)
            missing = [name for name, called in names.items() if not called & {*node.keys}]
            if missing:
                raise _refused(
                    "a window of the aggregate is made of several update keys, which are dropped and kept apart",
                    node,
                    f"groups by ({', '.join(node.keys)}), which lacks {', '.join(missing)} of the update key",
                    f"group by {', '.join(key)} as well, or put the queue above this aggregate",
                )
            names = {name: called & {*node.keys} for name, called in names.items()}
        elif isinstance(node, PASSING):
            names = {name: set(_called(node, called)) for name, called in names.items()}
            if isinstance(node, Project) and not node.keeps_time:
                raise _refused(
                    "the time of rows changes on the way to an aggregate, so that its windows are not those of the "
                    "stream",
                    node,
                    f"{node.time} as the time",
                    "take the window on the stream's own time",
                )
        else:
            raise _refused(
                "it remembers rows, or takes some from elsewhere, and would see parts of windows",
                node,
                type(node).__name__,
                "put it above the last aggregate, or the queue above it",
            )
    if marks.extents.following(0) is None:
        raise _refused(
            "no window of the aggregate below ever ends in one of its windows",
            marks.aggregates[-1],
            " over ".join(str(node.window) for node in reversed(marks.aggregates)),
            "choose windows of which the upper ones are at least a SLIDE of the lower ones long",
        )


def _check_window(node: WindowAggregate) -> None:
    window = node.window
    if not isinstance(window, SlidingWindow):
        raise _refused(
            "which rows are in a window depends on rows that would be dropped",
            node,
            str(window),
            "a window of RANGE and SLIDE on the time",
        )
    if window.attribute != node.input.schema.time:
        raise _refused(
            "windows are told apart by the time of rows, and this one is on another attribute",
            node,
            f"{window.attribute}, where the time is {node.input.schema.time}",
            "WA on the time",
        )


def _called(node: Select | Project | Unnest, names: set[str]) -> Iterator[str]:
    """What columns are called above a node."""
    if not isinstance(node, Project):
        yield from names
        return
    for name, expression in node.columns:
        if isinstance(expression, Column) and expression.name in names:
            yield name


def _refused(why: str, node: Node, got: str, hint: str = "") -> PlanError:
    return PlanError(f"Windows cannot be queued below this: {why}.", where=node.label, got=got, hint=hint)
