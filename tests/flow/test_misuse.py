"""Every public function and method, called with arguments of wrong kinds: it works, or says what is wrong in our words.

The cases are made from the signatures: one argument at a time is replaced by each of the wrong ones, the others are
right. An argument that turns out to be acceptable is no failure; an error that is not ours is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import PenstockError, QueryError, StreamError
from penstock.flow.flow_run import FlowRun
from penstock.flow.local import LocalQuery
from penstock.flow.local_run import LocalRun
from penstock.flow.merged_stream import MergedStream
from penstock.flow.results import Results
from penstock.io.connections import Listener
from penstock.io.published import Published


def wrong_ones() -> list[Any]:
    """Fresh ones: a list may be taken for a sink, and an iterator is read once."""
    return [
        None, 5, -1, 2**80, 1.5, float("nan"), True, "", "nonsense", "é\0", b"x", (), ("x",), [], [None], [5], ["x"],
        {}, {"x": 5}, {5: None}, object(), int, lambda: 0, iter([5]), Path("nowhere"), pk.Insert(("x",), 1, 2),
        pk.linear("vs", 5), "\ud800", "9" * 5000, f"{'9' * 5000} seconds", f"decimal({'9' * 5000},1)",
    ]  # fmt: skip


ROWS = [{"t": 1, "k": "a"}, {"t": 2, "k": "b"}]
ELEMENTS = [pk.Insert(("x",), 1, 2), pk.linear("vs", 5)]


class Total:
    def lift(self, value: int) -> int:
        return value

    def combine(self, left: int, right: int) -> int:
        return left + right

    def lower(self, partial: int) -> int:
        return partial


def flow() -> pk.Flow:
    declared = pk.Flow().stream("s", ROWS, time="t").stream("r", ROWS, time="t")
    return declared.function("f", abs, "int")


def query() -> LocalQuery:
    made = flow().query("SELECT t, k FROM s")
    assert isinstance(made, LocalQuery)
    return made


def merge() -> MergedStream:
    made: MergedStream = pk.merge({"a": ELEMENTS, "b": ELEMENTS})
    return made


def run() -> LocalRun:
    made = query().start([])
    made.wait()
    return made


class Idle:
    """A source that never has anything, so that runs over it go on."""

    def poll(self) -> Any:
        return pk.IDLE


def flow_run() -> FlowRun:
    made = pk.Flow().stream("s", Idle(), time="t", schema="t bigint, k string")
    started: FlowRun = made.start({made.query("SELECT t, k FROM s WHERE t > 0", name="q"): []}, max_held=10)
    RUNNING.append((made, started))
    return started


RUNNING: list[tuple[pk.Flow, FlowRun]] = []
"""The flows of runs that go on."""


class Queries:
    """Stands for a query of the flow at hand, with a sink."""


MAKERS: dict[type, Callable[[], Any]] = {
    pk.Flow: flow, LocalQuery: query, LocalExecution: lambda: query().execution(), MergedStream: merge, LocalRun: run,
    FlowRun: flow_run,
}  # fmt: skip
RIGHT: dict[str, dict[str, Any]] = {
    "Adjust": {"payload": ("x",), "vs": 1, "v_old": 5, "ve": 3},
    "Close": {"payload": ("x",), "ve": 2},
    "Flow": {"spark": None, "path": None},
    "Insert": {"payload": ("x",), "vs": 1, "ve": 2},
    "Open": {"payload": ("x",), "vs": 1},
    "PenstockError": {"what": "x", "where": "", "got": "", "hint": ""},
    "Punctuation": {"bounds": (("t", 5),), "constants": ()},
    "Retention": {"records": 100, "late": None, "dead_letters": None, "compact": False},
    "Signed": {"payload": ("x",), "time": 1, "sign": 1},
    "StreamProperties": {},
    "TDB": {"events": [(("x",), 1, 2)]},
    "bounded": {"delay": 5},
    "conflate": {"stream": ROWS, "time": "t", "key": "k"},
    "follow": {"path": "nowhere.jsonl"},
    "kafka": {"servers": "localhost:9", "topic": "t"},
    "kafka_sink": {"servers": "localhost:9", "topic": "t"},
    "listen": {"port": 0},
    "publish": {"port": 0},
    "redis": {"url": "redis://localhost:9/0", "stream": "s"},
    "redis_sink": {"url": "redis://localhost:9/0", "stream": "s"},
    "socket": {"host": "localhost", "port": 9},
    "equivalent": {"left": ELEMENTS, "right": ELEMENTS},
    "groupwise": {"attribute": "t", "bound": 5},
    "joint": {"bounds": 5},
    "linear": {"attribute": "t", "bound": 5},
    "merge": {"inputs": {"a": ELEMENTS, "b": ELEMENTS}},
    "per_source": {"column": "k"},
    "punctuated": {"predicate": "k = 'x'"},
    "snapshot_at": {"events": pk.tdb(ELEMENTS), "instant": 1},
    "snapshot_equivalent": {"left": ELEMENTS, "right": ELEMENTS},
    "snapshots": {"events": pk.tdb(ELEMENTS)},
    "tdb": {"elements": ELEMENTS},
    "timer": {"every": "1 second"},
    "Flow.stream": {"name": "x", "source": ROWS, "time": "t"},
    "Flow.table": {"name": "x", "source": ROWS, "schema": "t bigint, k string"},
    "Flow.merge": {"name": "m", "streams": ["s", "r"]},
    "Flow.conflate": {"name": "x", "stream": "s", "key": "k"},
    "Flow.latest": {"name": "x", "stream": "s", "key": "k"},
    "Flow.alter": {"name": "x", "stream": "s", "duration": 5},
    "Flow.function": {"name": "g", "function": abs, "returns": "int"},
    "Flow.aggregate": {"name": "g", "aggregate": Total, "returns": "int"},
    "Flow.watermarked": {"stream": "s"},
    "Flow.query": {"sql": "SELECT t FROM s"},
    "Flow.sql": {"text": "SELECT t FROM s"},
    "Flow.start": {"queries": Queries},
    "Flow.serve": {"queries": Queries},
    "FlowRun.add": {"query": Queries, "sink": []},
    "FlowRun.remove": {"name": "q"},
    "FlowRun.use": {"strategy": "bfs"},
    "FlowRun.break_after": {"state": "σ"},
    "FlowRun.place_breaks": {"rule": None},
    "FlowRun.share": {"weights": {"q": 2}},
    "FlowRun.cut_off": {"name": "q"},
    "FlowRun.punctuate": {"stream": "s", "bound": 5},
    "FlowRun.replace": {"name": "q", "sql": "SELECT t, k FROM s WHERE t > 1"},
    "FlowRun.can_replace": {"name": "q", "sql": "SELECT t, k FROM s WHERE t > 1"},
    "LocalRun.replace": {"sql": "SELECT t, k FROM s WHERE t > 1"},
    "LocalRun.can_replace": {"sql": "SELECT t, k FROM s WHERE t > 1"},
    "LocalExecution.replace": {"plan": query().plan},
    "LocalExecution.can_replace": {"plan": query().plan},
    "LocalExecution.tick": {"now": 5},
    "LocalQuery.start": {"sink": []},
    "LocalExecution.burst": {"stream": "s", "batches": []},
    "LocalExecution.feed": {"stream": "s", "item": pk.linear("t", 5)},
    "LocalExecution.pusher": {"stream": "s"},
    "LocalExecution.end": {"stream": "s"},
    "LocalExecution.feedback": {"bound": 5},
    "LocalExecution.restore": {"snapshot": query().execution().snapshot()},
    "LocalExecution.say": {"stream": "s", "punctuation": pk.linear("t", 5)},
    "LocalExecution.domain": {"stream": "s"},
    "LocalRun.punctuate": {"stream": "s", "bound": 5},
    "LocalExecution.run": {"sources": {"s": lambda: iter(())}},
    "MergedStream.push": {"name": "a", "element": pk.Insert(("y",), 7, 8)},
    "MergedStream.attach": {"name": "c"},
    "MergedStream.detach": {"name": "a"},
    "MergedStream.follow": {"driver": "majority"},
    "MergedStream.restart": {"name": "a"},
    "MergedStream.restore": {"snapshot": merge().snapshot()},
}
WITHOUT_A_KEY = ("read", "staleness")
"""Of runs whose results have no update key, which is told."""
WHILE_IT_RUNS = ("LocalRun.replace", "LocalExecution.abandon")
"""What a run that has come to its end refuses, and what takes back what nobody has begun."""
GIVEN = {"Query", "Run", "RunProgress"}
"""Types of what others give; nobody makes one by hand."""
OPTIONS = {"properties", "algorithm", "policy", "lag", "driver", "away", "on_divergence"}
"""Those of `pk.merge`, which its signature does not tell."""


def callables() -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """Name, what is called, and whether it is given an object first."""
    for name in pk.__all__:
        if callable(getattr(pk, name)) and name not in GIVEN:
            yield name, getattr(pk, name), False
    for kind in MAKERS:
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            waits = kind is FlowRun and name in ("wait", "awaitTermination")  # for ever; that of LocalRun is the same
            if not name.startswith("_") and not waits:
                yield f"{kind.__name__}.{name}", member, True


def parameters(name: str, function: Callable[..., Any]) -> list[str]:
    found = [p for p in inspect.signature(function).parameters if p != "self"]
    if name == "Flow.serve":
        return [p for p in found if p != "options"]  # those of Flow.start
    if name == "merge":
        return [*(p for p in found if p != "options"), *sorted(OPTIONS)]
    return found


CASES = [(name, function, bound, p) for name, function, bound in callables() for p in parameters(name, function)]


def called(name: str, function: Callable[..., Any], bound: bool, arguments: dict[str, Any]) -> None:
    """Call it, and use what it gives as far as a user must to see an error."""
    target = [MAKERS[next(k for k in MAKERS if k.__name__ == name.partition(".")[0])]()] if bound else []
    if arguments.get("queries") is Queries:
        arguments = {**arguments, "queries": {target[0].query("SELECT t, k FROM s"): []}}
    if arguments.get("query") is Queries:
        arguments = {**arguments, "query": RUNNING[-1][0].query("SELECT t, k FROM s", name="other")}
    try:
        _used(name, function, target, arguments)
    finally:
        while RUNNING:
            RUNNING.pop()[1].stop()


def _used(name: str, function: Callable[..., Any], target: list[Any], arguments: dict[str, Any]) -> None:
    given = function(*target, **arguments)
    if inspect.isgenerator(given) or isinstance(given, MergedStream | Results):
        list(given)
    if isinstance(given, pk.Run) and not RUNNING:
        given.wait()
    if isinstance(given, Published | Listener):
        given.close()
    if name == "LocalExecution.pusher":
        given((1, "a"))
        target[0].take()


@pytest.mark.parametrize(("name", "function", "bound", "parameter"), CASES, ids=[f"{c[0]}-{c[3]}" for c in CASES])
def test_a_wrong_argument_is_told(
    name: str,
    function: Callable[..., Any],
    bound: bool,
    parameter: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # for names that are taken for files
    if (name, parameter) == ("Flow", "spark"):
        pytest.importorskip("pyspark")
    raw = []
    for wrong in wrong_ones():
        try:
            called(name, function, bound, {**RIGHT.get(name, {}), parameter: wrong})
        except PenstockError:
            pass
        except Exception as error:
            raw.append(f"{parameter}={wrong!r}: {type(error).__name__}: {error}")
    assert not raw, "\n".join(raw)


def test_what_is_right_is_right() -> None:
    """Otherwise every case above would be refused for another reason than its own."""
    for name, function, bound in callables():
        if name not in ("Flow.watermarked", *WHILE_IT_RUNS) and not name.endswith(WITHOUT_A_KEY):
            called(name, function, bound, RIGHT.get(name, {}))
    with pytest.raises(StreamError, match="Only Spark has a watermark"):
        flow().watermarked("s")


@pytest.mark.parametrize("row", [(1,), (1, "a", 2), (), 5, None, {"t": 1}, "xy", (object(), "a"), ("x", "a"), [1, "a"]])
def test_a_row_that_is_none_is_a_dead_letter_when_pushed(row: Any) -> None:
    execution = query().execution()
    execution.pusher("s")(row)
    execution.take()
    assert (execution.counts.read, execution.counts.on_time + execution.counts.dead) == (1, 1)
    if row != [1, "a"]:
        assert execution.counts.dead == 1


def test_unknown_streams_and_options_are_named() -> None:
    execution = query().execution()
    for call in (lambda: execution.end("zz"), lambda: execution.feed("zz", pk.linear("t", 5))):
        with pytest.raises(StreamError) as refused:
            call()
        assert (refused.value.what, refused.value.got, refused.value.hint) == (
            "The query reads no such stream.", "zz", "it reads s",
        )  # fmt: skip
    with pytest.raises(PenstockError) as unknown:
        pk.merge({"a": ELEMENTS, "b": ELEMENTS}, polcy="half frozen")
    assert unknown.value.what == "A merge has no such option."
    assert unknown.value.hint == "did you mean 'policy'?"
    with pytest.raises(QueryError, match="A query is a text"):
        flow().query(b"SELECT t FROM s")  # type: ignore[arg-type]


def test_a_bound_on_another_attribute_is_not_taken_for_one_on_the_time() -> None:
    run = pk.Flow().stream("s", [], time="t", schema="t bigint, v int", progress=pk.bounded(100))
    execution = run.query("SELECT t FROM s").execution()
    with pytest.raises(PenstockError, match="the time is t") as caught:
        execution.feed("s", pk.linear("v", 5))
    assert "not the stream's time" in str(caught.value)
    execution.pusher("s")((3, 9))
    execution.close()
    assert (execution.counts.late, execution.counts.on_time) == (0, 1)
