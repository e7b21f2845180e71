"""What a checkpoint holds, as far as planning goes by it.

State is kept under identities, each with the kind of its pages. Four things are free when a query is planned and fixed
by state that is there already. The *identity* of a node: where the aliases of sub-queries are worded otherwise, a node
that means the same (`meaning`) goes by the identity that its state is under. The *names* of columns on the way, which
state may hold: they stay those of the checkpoint (`renaming`). The *algorithm* of an aggregate, which
costs decide: another setting, or a release that weighs otherwise, must not make the state useless. And the *order of a
union's branches*, which means nothing, but which port a promise came through is part of the state, and so is, on Spark,
which number a source has.

Branches are brought into the order of the checkpoint only if they have the same columns, so that no name changes by it.
Every order of a union's branches is tried that could be the one, up to `BRANCHES` of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

from penstock.operators.aggregates.columnar import ColumnarAggregate
from penstock.operators.aggregates.paned import PanedAggregate
from penstock.operators.aggregates.wid import WidAggregate
from penstock.plan.cost import COLUMNAR, DIFFERENTIAL, PANED, WID, Choice
from penstock.plan.identity import Known, identities
from penstock.plan.meaning import meanings, wordless
from penstock.plan.nodes import Node, Union
from penstock.plan.physical import Physical
from penstock.plan.renaming import called

BRANCHES = 6
"""A union of more branches stays as it is written."""
_WRITTEN_BY = {
    WidAggregate.kind: (WID,),
    PanedAggregate.kind: (PANED, DIFFERENTIAL),
    ColumnarAggregate.kind: (COLUMNAR,),
}
"""The algorithms that write, and read, pages of a kind."""


def runs_alike(one: Physical, other: Physical) -> bool:
    """Whether two plans of a query are run by operators that keep the same pages."""

    def kept_as(algorithm: str) -> str:
        return next((kind for kind, names in _WRITTEN_BY.items() if algorithm in names), algorithm)

    forms = [[(p.identity, kept_as(p.algorithm)) for p in plan.walk()] for plan in (one, other)]
    return forms[0] == forms[1]


@dataclass(frozen=True)
class Kept:
    """What a checkpoint holds."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    """Of the pages of each operator, by its identity."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """The identities by what their nodes mean; none in checkpoints of earlier releases."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What nodes call columns, by what they mean without it; none in checkpoints of earlier releases."""

    @staticmethod
    def of(kinds: Any, query: Any) -> Kept:
        """Of kinds by identity and the description of a query, as they were read.

        What is none of these is left to whoever checks the checkpoint.
        """
        said = query if isinstance(query, Mapping) else {}
        return Kept(_texts(kinds), _texts(said.get("meanings")), _names(said.get("names")))

    def identities(self, plan: Node) -> list[Known]:
        """The nodes of a plan, each with the identity of the one in the checkpoint that means the same."""
        known = identities(plan)
        if not self.meant:
            return known
        found = zip(known, meanings(known), strict=True)
        taken = [replace(each, identity=self.meant.get(meaning, each.identity)) for each, meaning in found]
        return taken if len({each.identity for each in taken}) == len(taken) else known

    def named(self, plan: Node) -> Node:
        """The plan with columns called as they are in the checkpoint, where they are worded otherwise."""
        if not self.names:
            return plan
        return called(plan, [self.names.get(meaning) for meaning in wordless(identities(plan))])

    def chosen(self, choice: Choice, identity: str) -> Choice:
        """The cheapest algorithm that can take up the state of an operator, if there is one."""
        able = [name for name in _WRITTEN_BY.get(self.kinds.get(identity, ""), ()) if name in choice.costs]
        if not able or choice.name in able:
            return choice
        return Choice(min(able, key=lambda name: choice.costs[name]), choice.costs, is_kept=True)

    def ordered(self, plan: Node) -> Node:
        """The plan with the branches of its unions in the order in which their state was kept."""
        unions = [at for at, node in enumerate(plan.walk()) if isinstance(node, Union)] if self.kinds else []
        for at in reversed(unions):  # those below first; what stands before a node stays where it is
            if not self._has(plan, at):
                plan = self._reordered(plan, at)
        return plan

    def as_it_was(self, plan: Node) -> Node:
        """The plan with the names and the order of branches that the checkpoint has."""
        return self.named(self.ordered(self.named(plan)))

    def has_of(self, plan: Node) -> int:
        """Of how many nodes of a plan there is state."""
        return sum(known.identity in self.kinds for known in self.identities(plan)) if self.kinds else 0

    def _reordered(self, plan: Node, at: int) -> Node:
        """The plan with one union in another order, if the checkpoint has it in that order."""
        union = list(plan.walk())[at]
        assert isinstance(union, Union)
        if len(union.branches) > BRANCHES or not _are_alike(union):
            return plan
        for branches in permutations(union.branches):
            tried = _with(plan, at, union.with_inputs(*branches))
            if self._has(tried, at):
                return tried
        return plan

    def _has(self, plan: Node, at: int) -> bool:
        return self.identities(plan)[at].identity in self.kinds


def _texts(found: Any) -> dict[str, str]:
    """What of a mapping is text by text."""
    pairs = found.items() if isinstance(found, Mapping) else ()
    return {key: value for key, value in pairs if isinstance(key, str) and isinstance(value, str)}


def _names(found: Any) -> dict[str, tuple[str, ...]]:
    """What of a mapping is lists of text by text."""
    pairs = found.items() if isinstance(found, Mapping) else ()
    return {
        key: tuple(value)
        for key, value in pairs
        if isinstance(key, str) and isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    }


def _are_alike(union: Union) -> bool:
    """Whether the branches of a union could change places without anybody noticing by names and types."""
    first, *others = [branch.schema for branch in union.branches]
    return all(other.fields == first.fields and other.time == first.time for other in others)


def _with(plan: Node, at: int, node: Node) -> Node:
    """The plan with another node, and what is below that, at a place in the order in which it walks."""
    if at == 0:
        return node
    inputs, below = [], at - 1
    for each in plan.inputs:
        size = sum(1 for _ in each.walk())
        inputs.append(_with(each, below, node) if 0 <= below < size else each)
        below -= size
    return plan.with_inputs(*inputs)
