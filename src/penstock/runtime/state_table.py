"""The state table: which operator of a graph runs next, as data (Stream Mill, section 3, Tables 1 to 3).

States are operators, and forks behind those that several take from. A row has a state, its predecessors, its successor
and the rule that decides between them (`runtime.rules`). The table is made of a graph by the strategies of its
operators; to change a strategy, or the graph, is to make another table.

An arc can be a *break node*: what is given on it waits, so that the path ends before it and another begins behind it.
Neither is the other's successor or predecessor. Round-robin is on paths: it breaks arcs of its own, where several take
from an operator, where an operator takes from several, and where another strategy begins. What is joined by arcs that
are not broken is a *part*; the scheduler runs one part at a time.

Making a table costs time by the number of operators and arcs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.runtime.rules import Rule, fork_of, rule_of
from penstock.runtime.strategies import ROUND_ROBIN, Strategy

N = TypeVar("N", bound=Hashable)
L = TypeVar("L", bound=Hashable)


@dataclass(frozen=True)
class Link(Generic[N, L]):
    """An arc between two operators."""

    arc: L
    producer: N
    consumer: N
    is_break: bool = False


@dataclass(frozen=True)
class Fork(Generic[N]):
    """Stands behind an operator that several take from."""

    of: N


@dataclass(frozen=True)
class Row(Generic[N, L]):
    """A state and what follows it."""

    state: N | Fork[N]
    pred: tuple[N | Fork[N], ...]
    succ: N | Fork[N] | None
    rule: Rule
    by: L | None = None
    """The arc by which the successor takes what the state gives, if it is an operator."""


class StateTable(Generic[N, L]):
    """What runs next in a graph."""

    def __init__(
        self, rows: Sequence[Row[N, L]], parts: Sequence[Sequence[N]], breaks: frozenset[L], entrances: frozenset[N]
    ) -> None:
        """Made by `tabulated`; `entrances` are the operators that no arc leads to, broken or not."""
        self.rows, self.parts, self.breaks, self.entrances = tuple(rows), tuple(map(tuple, parts)), breaks, entrances

    def show(self, label: Callable[[N], str] | None = None, *, rules: bool = False) -> str:
        """As the paper prints it; with what each state is, if there is a `label`, and with the clauses of `rules`."""
        names = self.names()
        cells = [("state", "Pred", "Succ", "Transition")]
        for row in self.rows:
            pred = ", ".join(dict.fromkeys(names[each] for each in row.pred))
            cells.append((names[row.state], pred or "-", "-" if row.succ is None else names[row.succ], row.rule.name))
        widths = [max(len(line[at]) for line in cells) for at in range(4)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
        told = [line.rstrip() for line in lines]
        if label is not None:
            told += ["", *(f"{name} = {label(state)}" for state, name in names.items() if not isinstance(state, Fork))]
        if rules:
            told += ["", *dict.fromkeys(str(row.rule) for row in self.rows)]
        return "\n".join(told)

    def names(self) -> dict[N | Fork[N], str]:
        """σ for entrances, Σ1, Σ2, … for other operators, and forks."""
        states = list(dict.fromkeys(row.state for row in self.rows))
        forks = [state for state in states if isinstance(state, Fork)]
        sources = [state for state in states if state in self.entrances]
        others = [state for state in states if not isinstance(state, Fork) and state not in self.entrances]
        found: dict[N | Fork[N], str] = {}
        groups: tuple[tuple[str, Sequence[N | Fork[N]]], ...] = (("σ", sources), ("fork", forks))
        for letter, group in groups:
            found |= {state: letter if len(group) == 1 else f"{letter}{at}" for at, state in enumerate(group, 1)}
        found |= {state: f"Σ{at}" for at, state in enumerate(others, 1)}
        return {state: found[state] for state in states}


def tabulated(nodes: Iterable[N], links: Iterable[Link[N, L]], strategy: Callable[[N], Strategy]) -> StateTable[N, L]:
    """The table of a graph whose operators have strategies; rows go from the sources to the results."""
    ordered, links = _from_sources(list(nodes), list(links))
    broken = _broken(links, strategy)
    forward: dict[N, list[Link[N, L]]] = {node: [] for node in ordered}
    back: dict[N, list[Link[N, L]]] = {node: [] for node in ordered}
    for link in links:
        if link.arc not in broken:
            forward[link.producer].append(link)
            back[link.consumer].append(link)

    def behind(node: N) -> N | Fork[N]:
        return Fork(node) if len(forward[node]) > 1 else node

    rows: list[Row[N, L]] = []
    for node in ordered:
        pred = tuple(behind(link.producer) for link in back[node])
        rule = rule_of(strategy(node), is_first=not pred, is_last=not forward[node])
        if not forward[node]:
            rows.append(Row(node, pred, None, rule))
            continue
        if len(forward[node]) == 1:
            (link,) = forward[node]
            rows.append(Row(node, pred, link.consumer, rule, link.arc))
            continue
        fork = Fork(node)
        rows.append(Row(node, pred, fork, rule))
        rows += [Row(fork, (node,), link.consumer, fork_of(strategy(node)), link.arc) for link in forward[node]]
    fed = {link.consumer for link in links}
    return StateTable(rows, _parts(ordered, forward), broken, frozenset(ordered) - fed)


def _from_sources(nodes: list[N], links: list[Link[N, L]]) -> tuple[list[N], list[Link[N, L]]]:
    """Operators in an order in which each comes after those that it takes from, and arcs by the order of producers."""
    waits = Counter(link.consumer for link in links)
    takers: dict[N, list[Link[N, L]]] = {node: [] for node in nodes}
    for link in links:
        takers[link.producer].append(link)
    ready = deque(node for node in nodes if not waits[node])
    ordered: list[N] = []
    while ready:
        node = ready.popleft()
        ordered.append(node)
        for link in takers[node]:
            waits[link.consumer] -= 1
            if not waits[link.consumer]:
                ready.append(link.consumer)
    return ordered, [link for node in ordered for link in takers[node]]


def _broken(links: list[Link[N, L]], strategy: Callable[[N], Strategy]) -> frozenset[L]:
    """The arcs that are break nodes: those that are said to be, and those of round-robin."""
    taken, fed = Counter(link.producer for link in links), Counter(link.consumer for link in links)

    def ends_a_path(link: Link[N, L]) -> bool:
        both = {strategy(link.producer), strategy(link.consumer)}
        if ROUND_ROBIN not in both:
            return False
        return len(both) > 1 or taken[link.producer] > 1 or fed[link.consumer] > 1

    return frozenset(link.arc for link in links if link.is_break or ends_a_path(link))


def _parts(ordered: list[N], forward: dict[N, list[Link[N, L]]]) -> list[list[N]]:
    """What is joined by arcs that are not broken."""
    beside: dict[N, list[N]] = {node: [] for node in ordered}
    for node in ordered:
        for link in forward[node]:
            beside[node].append(link.consumer)
            beside[link.consumer].append(node)
    found: list[list[N]] = []
    seen: set[N] = set()
    for first in ordered:
        if first in seen:
            continue
        seen.add(first)
        part = [first]
        for node in part:
            fresh = [other for other in dict.fromkeys(beside[node]) if other not in seen]
            seen.update(fresh)
            part += fresh
        found.append(part)
    return found
