"""Rules of next-operator selection: what follows when an operator has run (Stream Mill, sections 2.3, 2.4 and 3).

A rule is a list of clauses, each an action and the condition under which it is taken; the first that holds decides.

- **Forward**: the successor runs. Where several take what the operator gave, a *fork* stands between them, which goes
  forward to each of them in turn.
- **Encore**: the operator runs again.
- **Backtrack**: the rule of the predecessor decides: of the one that control came from.
- **Next**: control goes back to the scheduler. That is backtracking from where rows come from, outside or a break node.

Conditions: `yield`, a successor has not taken everything that the operator gave; `more`, the operator has something to
take, or has not given all that came of the last element; `processed < k`, since control came to it, it took fewer than
k elements. Results are taken by others, so the last operator of a path never goes forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Protocol

from penstock.runtime.strategies import Strategy


class Action(Enum):
    """What is done next."""

    FORWARD = "Forward"
    ENCORE = "Encore"
    BACKTRACK = "Backtrack"
    NEXT = "Next"


class Running(Protocol):
    """What a condition asks of an operator."""

    processed: int

    def has_given(self) -> bool:
        """`yield`: a successor has not taken all of its output."""

    def has_more(self) -> bool:
        """`more`: it has something to take or to go on with."""


class Condition(Enum):
    """When a clause holds."""

    YIELD = "yield"
    MORE = "more"
    WITHIN = "more and processed < k"
    ALWAYS = ""


@dataclass(frozen=True)
class Rule:
    """What follows when an operator has run."""

    name: str
    clauses: tuple[tuple[Action, Condition], ...]
    batch: int = 1
    """k."""

    def select(self, node: Running) -> Action:
        """The action of the first clause that holds."""
        for action, condition in self.clauses:
            if (
                condition is Condition.ALWAYS
                or (condition is Condition.YIELD and node.has_given())
                or (condition is Condition.MORE and node.has_more())
                or (condition is Condition.WITHIN and node.processed < self.batch and node.has_more())
            ):
                return action
        raise AssertionError(self.name)

    def __str__(self) -> str:
        """The clauses in words, one a line."""
        return "\n".join([self.name, *(f"  {self._clause(at)}" for at in range(len(self.clauses)))])

    def _clause(self, at: int) -> str:
        action, condition = self.clauses[at]
        otherwise = "else " if at else ""
        when = condition.value.replace("< k", f"< {self.batch}")
        then = {Action.FORWARD: "next := succ", Action.ENCORE: "next := self", Action.BACKTRACK: "next := pred"}
        told = then.get(action, "exit")
        return f"{action.value}: {otherwise}{f'if {when} then {told}' if when else told}"


ENCORE, FORWARD = (Action.ENCORE, Condition.MORE), (Action.FORWARD, Condition.YIELD)
BACKTRACK, NEXT = (Action.BACKTRACK, Condition.ALWAYS), (Action.NEXT, Condition.ALWAYS)


class Rules:
    """The library of a strategy: the rule of an operator by where it stands in its part of the graph."""

    def __init__(self, strategy: Strategy) -> None:
        """Made by `rules_of`."""
        self.strategy = strategy
        self._rules = [
            _rule(strategy, is_first=first, is_last=last) for first in (False, True) for last in (False, True)
        ]
        self.fork = Rule(f"{strategy.short}-Fork", (FORWARD, BACKTRACK))
        """Of the fork behind an operator that several take from."""

    def at(self, *, is_first: bool, is_last: bool) -> Rule:
        """Of an operator that is the first or the last of a path, or in between."""
        return self._rules[2 * is_first + is_last]


@cache
def rules_of(strategy: Strategy) -> Rules:
    """The rules of a strategy."""
    return Rules(strategy)


def _rule(strategy: Strategy, *, is_first: bool, is_last: bool) -> Rule:
    place = "-".join([*["Source"] * is_first, *["Sink"] * is_last]) or "NOS"
    order = [FORWARD, ENCORE] if strategy.kind == "dfs" else [ENCORE, FORWARD]
    if strategy.batch > 1:
        order = [(Action.ENCORE, Condition.WITHIN), *order]
    if is_last:
        order = [ENCORE]
    last = NEXT if is_first or strategy.kind == "round_robin" else BACKTRACK
    return Rule(f"{strategy.short}-{place}", (*order, last), strategy.batch)
