"""Votes by start and key: whether there is an event, and with which values.

That there is an event is one question: an input that has other values for a key than the others says so too. Which
values it has is the next, and asked only of those that have it: those that most inputs give and, among equals, those of
the input that is furthest ahead, or that comes first. So an event that every input reports never vanishes because they
differ in a measure. It takes more than half of the joined inputs, or the word of all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from penstock.operators.merge.base import Input
from penstock.operators.merge.index import IndexNode


@dataclass
class Election:
    """The vote on the events of one start and key."""

    nodes: list[IndexNode] = field(default_factory=list)
    held: bool = False
    elected: int | None = None
    """Which voter speaks for all; None if it takes more of them."""


def elect_present(words: Sequence[Hashable], voters: Sequence[Input], joined: int) -> int | None:
    """Which voter speaks for all, by what each says; a word that is empty says that there is no such event."""
    if not words:
        return None
    answer, votes = Counter(words).most_common(1)[0]
    if votes > joined // 2:
        return words.index(answer)
    if len(words) < joined:
        return None
    ahead = sorted(range(len(words)), key=lambda i: -voters[i].stable)
    present = [i for i in ahead if words[i]]
    if 2 * len(present) < len(words) or (2 * len(present) == len(words) and not words[ahead[0]]):
        return words.index(())
    times = Counter(words[i] for i in present)
    return max(present, key=lambda i: times[words[i]])
