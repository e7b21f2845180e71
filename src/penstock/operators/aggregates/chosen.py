"""The groups that a group-wise punctuation closes windows of: those whose keys have its constants.

A promise whose constants are all group keys says that no more rows of these groups come below its bound, so their
windows up to it are complete and come out at once. One with a constant that is no key speaks for a part of a group, and
closes nothing.

Where panes are shared by windows, what is left of a group's panes may still be in windows that came out: how far each
such group is closed *ahead* of the others is kept until all have come as far, or nothing of it is left there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.model.elements import Punctuation
from penstock.model.values import canonical

Key = tuple[Any, ...]
AHEAD = "ahead"
"""The page that says, per group that is closed ahead of others, which is its first window not yet put out."""


@dataclass(frozen=True)
class Chosen:
    """Some of the groups."""

    wanted: tuple[tuple[int, Any], ...]
    """Positions among the keys, and what stands there."""
    key: Key | None = None
    """The one group that is meant, where all keys are said."""

    @staticmethod
    def by(promise: Punctuation, attribute: str, names: Sequence[str]) -> Chosen | None:
        """The groups that a promise on an attribute is about; None if it closes nothing."""
        constants = {name: canonical(value) for name, value in promise.constants}
        if [n for n, _ in promise.bounds] != [attribute] or not constants or not constants.keys() <= set(names):
            return None
        wanted = tuple([(at, constants[name]) for at, name in enumerate(names) if name in constants])
        return Chosen(wanted, tuple([value for _, value in wanted]) if len(wanted) == len(names) else None)

    def __contains__(self, key: Key) -> bool:
        """Whether a group is meant."""
        return all(canonical(key[at]) == value for at, value in self.wanted)

    def of(self, groups: dict[Key, Any]) -> list[Key]:
        """The groups among some that are meant."""
        if self.key is not None:
            return [self.key] if self.key in groups else []
        return [key for key in groups if key in self]
