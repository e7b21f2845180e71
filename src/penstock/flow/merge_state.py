"""The snapshot of a merge in-process: its state, what it has yet to say, what was put aside, and the forms.

It is opened into a merge that was made with the same settings and of the same inputs, all of it or, with an error,
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import CheckpointError
from penstock.flow.merge_forms import Forms
from penstock.operators.merge.base import LogicalMerge, Misstep
from penstock.operators.merge.operator import MergeOperator
from penstock.operators.merge.pages import differing, flatten, settings_of, unflatten
from penstock.operators.state import open_page, open_snapshot, seal_snapshot


class _State:
    """The pages of a merge that is not an operator: one."""

    kind, version = MergeOperator.kind, MergeOperator.version

    def __init__(self, fresh: LogicalMerge) -> None:
        self.fresh = fresh

    def to_plain(self, key: str, page: Any) -> Any:
        """As an operator's."""
        return flatten(page)

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The merge, what it has yet to say, and what was put aside."""
        flat, pending = data
        merge, *beside = unflatten(flat, self.fresh)
        return merge, beside[:pending], beside[pending:]


@dataclass(frozen=True)
class Opened:
    """What a snapshot holds."""

    merge: LogicalMerge
    pending: list[Any]
    missteps: list[Misstep]
    driver: Any
    """Under which it was taken."""
    take_up_forms: Callable[[], None]


def sealed(merge: LogicalMerge, forms: Forms, pending: list[Any], missteps: list[Misstep]) -> bytes:
    """The snapshot."""
    content = {
        "merge": settings_of(merge),
        "version": MergeOperator.version,
        "state": flatten(merge, *pending, *missteps),
        "pending": len(pending),
    }
    plain = forms.to_plain()
    if plain is not None:
        content["forms"] = plain
    return seal_snapshot(content, f"merge {merge.name}")


def opened(snapshot: bytes, fresh: LogicalMerge, forms: Forms, inputs: set[str]) -> Opened:
    """What is in a snapshot of such a merge."""
    saved = open_snapshot(snapshot)
    settings: Any = saved.get("merge")
    other = differing(settings, settings_of(fresh)) if isinstance(settings, dict) else ["it is of a query"]
    if other:
        raise CheckpointError(
            "The snapshot is of another merge.",
            got="; ".join(other),
            hint="restore it into a merge with the same algorithm and options",
        )
    state = _State(fresh)
    held = saved.get("state"), saved.get("pending")
    merge, pending, missteps = open_page(state, "merge", state.kind, saved.get("version"), held, where="merge")
    if set(merge.inputs) != inputs:
        raise CheckpointError(
            "The snapshot is of a merge of other inputs.",
            got=f"inputs {', '.join(sorted(inputs))}; the snapshot has {', '.join(merge.inputs)}",
            hint="make the merge with the inputs of the snapshot (a driver that left: away=[…]) and restore it, "
            "then attach and detach",
        )
    return Opened(merge, pending, missteps, settings.get("driver"), forms.from_plain(saved.get("forms")))
