"""State tables: Stream Mill's Tables 1 to 3 and its rules, written down by hand from the paper."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.errors import StreamError
from penstock.runtime.rules import Action, rules_of
from penstock.runtime.state_table import Link, StateTable, tabulated
from penstock.runtime.strategies import BREADTH_FIRST, DEPTH_FIRST, ROUND_ROBIN, Strategy, dfs, strategy_of


def table(
    arcs: str, strategy: Strategy = DEPTH_FIRST, *, breaks: str = "", others: dict[str, Strategy] | None = None
) -> StateTable[str, str]:
    """The table of a graph of arcs such as `a>b b>c`."""
    links = [Link(arc, *arc.split(">"), arc in breaks.split()) for arc in arcs.split()]
    nodes = list(dict.fromkeys(node for link in links for node in (link.producer, link.consumer)))
    return tabulated(nodes, links, lambda node: (others or {}).get(node, strategy))


def printed(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def test_table_1_a_single_path() -> None:
    assert printed(table("source>Q1 Q1>Q2").show()) == printed(
        """
        state Pred Succ Transition
        σ     -    Σ1   DFS-Source
        Σ1    σ    Σ2   DFS-NOS
        Σ2    Σ1   -    DFS-Sink
        """
    )


def test_table_2_a_single_path_with_a_virtual_break_node() -> None:
    assert printed(table("source>Q1 Q1>Q2", breaks="Q1>Q2").show()) == printed(
        """
        state Pred Succ Transition
        σ     -    Σ1   DFS-Source
        Σ1    σ    -    DFS-Sink
        Σ2    -    -    DFS-Source-Sink
        """
    )


def test_table_3_a_fork() -> None:
    # The paper has one row for both operators behind the fork, with Σ for either.
    assert printed(table("source>Q1 source>Q2").show()) == printed(
        """
        state Pred Succ Transition
        σ     -    fork DFS-Source
        fork  σ    Σ1   DFS-Fork
        fork  σ    Σ2   DFS-Fork
        Σ1    fork -    DFS-Sink
        Σ2    fork -    DFS-Sink
        """
    )


def test_the_papers_tables_are_those_of_graphs_as_they_run() -> None:
    flow = pk.Flow().stream("s", [], time="t", schema="t bigint, v bigint")
    path = {"q": flow.query("SELECT t, v + 1 AS w FROM s WHERE v > 3").plan}
    run = SharedExecution(flow.catalog, path)
    assert run.table().split("\n\n")[0] == table("source>Q1 Q1>Q2").show()
    run.break_after("Σ1")
    assert run.table().split("\n\n")[0] == table("source>Q1 Q1>Q2", breaks="Q1>Q2").show()
    fork = {f"q{k}": flow.query(f"SELECT * FROM s WHERE v = {k}").plan for k in (1, 2)}
    assert SharedExecution(flow.catalog, fork).table().split("\n\n")[0] == table("source>Q1 source>Q2").show()


def test_the_rules_are_the_papers() -> None:
    def said(strategy: Strategy, *, first: bool = False, last: bool = False) -> list[str]:
        rule = rules_of(strategy).at(is_first=first, is_last=last)
        return [line.strip() for line in str(rule).splitlines()[1:]]

    forward, encore = "Forward: if yield then next := succ", "Encore: else if more then next := self"
    assert said(DEPTH_FIRST) == [forward, encore, "Backtrack: else next := pred"]
    assert said(DEPTH_FIRST, first=True) == [forward, encore, "Next: else exit"]
    assert said(DEPTH_FIRST, last=True) == ["Encore: if more then next := self", "Backtrack: else next := pred"]
    before = ["Encore: if more then next := self", "Forward: else if yield then next := succ"]
    assert said(BREADTH_FIRST) == [*before, "Backtrack: else next := pred"]
    assert said(ROUND_ROBIN) == [*before, "Next: else exit"]
    assert said(dfs(batch=8)) == [
        "Encore: if more and processed < 8 then next := self",
        "Forward: else if yield then next := succ",
        "Encore: else if more then next := self",
        "Backtrack: else next := pred",
    ]
    assert [action for action, _ in rules_of(DEPTH_FIRST).fork.clauses] == [Action.FORWARD, Action.BACKTRACK]


def test_round_robin_breaks_a_graph_into_paths() -> None:
    #  s ─ a ─┬─ b ─┐
    #         └─ c ─┴─ u ─ v
    made = table("s>a a>b a>c b>u c>u u>v", ROUND_ROBIN)
    assert made.breaks == {"a>b", "a>c", "b>u", "c>u"}
    assert [set(part) for part in made.parts] == [{"s", "a"}, {"b"}, {"c"}, {"u", "v"}]
    assert "RR-Source-Sink" in made.show()
    assert "fork" not in made.show()


def test_a_part_of_a_graph_may_have_a_strategy_of_its_own() -> None:
    made = table("s>a a>b b>c", others={"b": BREADTH_FIRST, "c": dfs(4)})
    assert [row.rule.name for row in made.rows] == ["DFS-Source", "DFS-NOS", "BFS-NOS", "DFS(4)-Sink"]
    assert len(made.parts) == 1
    broken = table("s>a a>b b>c", others={"b": ROUND_ROBIN, "c": ROUND_ROBIN})
    assert broken.breaks == {"a>b"}


def test_several_sources_and_the_predecessors_of_a_union_are_named() -> None:
    assert printed(table("a>u b>u u>v").show()) == printed(
        """
        state Pred Succ Transition
        σ1    -    Σ1   DFS-Source
        σ2    -    Σ1   DFS-Source
        Σ1    σ1,  σ2   Σ2 DFS-NOS
        Σ2    Σ1   -    DFS-Sink
        """
    )


@pytest.mark.parametrize("wrong", ["depth", "", None, 3, ["dfs"]])
def test_a_wrong_strategy_is_refused(wrong: object) -> None:
    with pytest.raises(StreamError) as told:
        strategy_of(wrong, "flow.start")
    error = told.value
    assert error.what == "There is no such execution strategy."
    assert error.where == "flow.start"
    assert error.got == repr(wrong)
    assert error.hint == "'dfs', 'bfs', 'round_robin', or pk.dfs(batch=64)"


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "4"])
def test_a_batch_of_less_than_one_is_refused(wrong: object) -> None:
    with pytest.raises(StreamError) as told:
        dfs(batch=wrong)  # type: ignore[arg-type]
    error = told.value
    assert error.what == "A batch of a depth-first strategy is at least one element."
    assert (error.where, error.got, error.hint) == ("pk.dfs", f"batch={wrong!r}", "pk.dfs(batch=64)")
