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
from typing import Generic, NamedTuple, TypeVar

from penstock.runtime.rules import Rule, Rules, rules_of
from penstock.runtime.strategies import Strategy

N = TypeVar("N", bound=Hashable)
L = TypeVar("L", bound=Hashable)


class Link(NamedTuple, Generic[N, L]):
    """An arc between two operators."""

    arc: L
    producer: N
    consumer: N
    is_break: bool = False


class Fork(NamedTuple, Generic[N]):
    """Stands behind an operator that several take from."""

    of: N


class Row(NamedTuple, Generic[N, L]):
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
    nodes, links = list(nodes), list(links)
    ordered = _from_sources(nodes, links)
    broken = _broken(nodes, links, strategy)
    unbroken = [link for link in links if link.arc not in broken] if broken else links
    forward = _by([link.producer for link in unbroken], unbroken)
    back = _by([link.consumer for link in unbroken], unbroken)
    rows: list[Row[N, L]] = []
    rules: Rules | None = None
    for node in ordered:
        after, before = forward.get(node, ()), back.get(node, ())
        pred = tuple([Fork(link.producer) if len(forward[link.producer]) > 1 else link.producer for link in before])
        if rules is None or rules.strategy is not strategy(node):
            rules = rules_of(strategy(node))
        rule = rules.at(is_first=not before, is_last=not after)
        if len(after) > 1:
            fork = Fork(node)
            rows.append(Row(node, pred, fork, rule))
            rows += [Row(fork, (node,), link.consumer, rules.fork, link.arc) for link in after]
        elif after:
            rows.append(Row(node, pred, after[0].consumer, rule, after[0].arc))
        else:
            rows.append(Row(node, pred, None, rule))
    entrances = frozenset(nodes).difference([link.consumer for link in links])
    return StateTable(rows, _parts(ordered, forward, back), broken, entrances)


def _by(nodes: Iterable[N], links: Sequence[Link[N, L]]) -> dict[N, list[Link[N, L]]]:
    """Arcs by one of their ends."""
    found: dict[N, list[Link[N, L]]] = {}
    for node, link in zip(nodes, links, strict=True):
        if node in found:
            found[node].append(link)
        else:
            found[node] = [link]
    return found


def _from_sources(nodes: Sequence[N], links: Sequence[Link[N, L]]) -> list[N]:
    """Operators in an order in which each comes after those that it takes from."""
    waits = Counter([link.consumer for link in links])
    takers = _by([link.producer for link in links], links)
    ready = deque([node for node in nodes if node not in waits])
    ordered: list[N] = []
    while ready:
        node = ready.popleft()
        ordered.append(node)
        for link in takers.get(node, ()):
            waits[link.consumer] -= 1
            if not waits[link.consumer]:
                ready.append(link.consumer)
    return ordered


def _broken(nodes: Sequence[N], links: Sequence[Link[N, L]], strategy: Callable[[N], Strategy]) -> frozenset[L]:
    """The arcs that are break nodes: those that are said to be, and those of round-robin."""
    said = [link.arc for link in links if link.is_break]
    on_paths = {node for node in nodes if strategy(node).kind == "round_robin"}
    if not on_paths:
        return frozenset(said)
    taken, fed = Counter([link.producer for link in links]), Counter([link.consumer for link in links])

    def ends_a_path(link: Link[N, L]) -> bool:
        ends = (link.producer in on_paths) + (link.consumer in on_paths)
        return ends == 1 or (ends == 2 and (taken[link.producer] > 1 or fed[link.consumer] > 1))

    return frozenset([*said, *(link.arc for link in links if ends_a_path(link))])


def _parts(ordered: Sequence[N], forward: dict[N, list[Link[N, L]]], back: dict[N, list[Link[N, L]]]) -> list[list[N]]:
    """What is joined by arcs that are not broken."""
    found: list[list[N]] = []
    seen: set[N] = set()
    for first in ordered:
        if first in seen:
            continue
        seen.add(first)
        part = [first]
        for node in part:
            for link in forward.get(node, ()):
                if link.consumer not in seen:
                    seen.add(link.consumer)
                    part.append(link.consumer)
            for link in back.get(node, ()):
                if link.producer not in seen:
                    seen.add(link.producer)
                    part.append(link.producer)
        found.append(part)
    return found
