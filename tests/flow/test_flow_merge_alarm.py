"""`flow.merge` where replicas differ: what is told, what is borne, and what may not be asked for."""

from __future__ import annotations

import random

import pytest

import penstock as pk
from penstock.errors import MergeError
from penstock.flow.flow import Flow
from penstock.flow.replicas import WAITING
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.testing.asserts import assert_sound
from tests.flow.test_flow_merge import SCHEMA, STRICT, flow


@pytest.mark.parametrize("progress", [pk.ordered(), pk.bounded(5)])
@pytest.mark.parametrize("key", [None, ["k"]])
def test_a_row_that_a_replica_lacks_is_told_as_a_dead_letter(progress: object, key: list[str] | None) -> None:
    run = flow(progress, key=key).query("SELECT * FROM clean").execution()  # type: ignore[union-attr]
    rows = [(t, "k", t % 3) for t in range(40)]
    for name, given_rows in (("a", rows), ("b", [r for r in rows if r[0] != 17])):
        run.feed(name, Batch(run.graph.sources[name][0].operator.schema, given_rows))
    outputs = run.close()
    letters = run.dead_letters()
    assert letters["reason"].to_pylist() == ["diverged: b has nothing where the output has [17, 18): (17, 'k', 2)"]
    assert '"ts": 17' in letters["row"][0].as_py()
    assert_sound(outputs)


def test_an_alarm_may_stop_the_flow_or_be_ignored() -> None:
    for reaction, stops in (("stop", True), ("ignore", False)):
        run = flow(key=["k"], on_divergence=reaction).query("SELECT * FROM clean").execution()  # type: ignore[union-attr]
        run.feed("a", Batch(run.graph.sources["a"][0].operator.schema, [(1, "k", 1)]))
        if stops:
            with pytest.raises(MergeError, match="not replicas of one stream"):
                run.close()
        else:
            run.close()
            assert run.dead_letters().num_rows == 0


def test_disorder_in_replicas_declared_strictly_ordered_is_a_dead_letter() -> None:
    run = flow(pk.bounded(100), properties=STRICT).query("SELECT * FROM clean").execution()  # type: ignore[union-attr]
    schema = run.graph.sources["a"][0].operator.schema
    run.feed("a", Batch(schema, [(t, "k", t) for t in (1, 5, 3, 7)]))
    (reason,) = run.dead_letters()["reason"].to_pylist()
    assert reason == "a: a start of 3 after one of 5 in a stream declared strictly ordered (R0)"


@pytest.mark.parametrize("key", [None, ["k"]])
@pytest.mark.parametrize("progress", [pk.ordered(), pk.bounded(5)])
def test_floats_in_their_last_bits_neither_double_nor_accuse(key: list[str] | None, progress: object) -> None:
    made = Flow()
    for name in ("a", "b"):
        made.stream(name, iter(()), time="ts", schema="ts bigint, k string, x double", progress=progress)  # type: ignore[arg-type]
    query = made.merge("clean", ["a", "b"], key=key, on_divergence="stop").query("SELECT * FROM clean")
    run = query.execution()  # type: ignore[union-attr]
    outputs: list[Batch | Punctuation] = []
    for name, noise in (("a", 0.0), ("b", 3e-16)):
        rows = [(t, "xy"[t % 2], 0.1 * (t + 1) * (1 + noise)) for t in range(30)]
        outputs += run.feed(name, Batch(run.graph.sources[name][0].operator.schema, rows))
    outputs += run.close()
    assert sum(len(item) for item in outputs if isinstance(item, Batch)) == 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"driver": "c"}, "no such driver"),
        ({"driver": "majorty"}, "did you mean 'majority'"),
        ({"lag": -1}, "0 or more"),
        ({"lag": True}, "0 or more"),
        ({"on_divergence": "stopp"}, "did you mean 'stop'"),
        ({"policy": "half frosen"}, "did you mean 'half frozen'"),
    ],
)
def test_options_of_a_merge_are_checked_at_once(options: dict[str, object], message: str) -> None:
    with pytest.raises(MergeError, match=message) as error:
        flow(**options)
    assert error.value.where == "stream clean"


def test_a_driver_and_a_lag_need_an_index() -> None:
    assert (
        "LMerge R3, half frozen, bounds by majority"
        in flow(pk.ordered(), key=["k"], driver="majority").query("SELECT * FROM clean").explain()
    )
    with pytest.raises(MergeError, match="its own replica"):
        Flow().stream("a", iter(()), time="ts", schema=SCHEMA).merge("m", ["a", "a"])


@pytest.mark.parametrize("seed", range(12))
def test_what_two_of_three_have_is_there_and_the_third_is_told(seed: int) -> None:
    rng = random.Random(seed)
    rows = [(t, rng.choice("xy"), t % 3) for t in range(20)]
    wrong, missing = rng.choice("abc"), rng.randrange(20)
    made = Flow()
    for name in "abc":
        made.stream(name, iter(()), time="ts", schema=SCHEMA, progress=pk.bounded(4))
    options = {"key": rng.choice([None, ["k"]]), "lag": rng.choice([0, 3]), "policy": rng.choice(list(WAITING))}
    query = made.merge("clean", list("abc"), driver="majority", **options).query("SELECT * FROM clean")  # type: ignore[arg-type]
    run = query.execution()  # type: ignore[union-attr]
    queues = {n: [r for r in rows if (n, r[0]) != (wrong, missing)] for n in "abc"}
    outputs: list[Batch | Punctuation] = []
    while any(queues.values()):
        name = rng.choice([n for n in queues if queues[n]])
        size = rng.randint(1, 4)
        outputs += run.feed(name, Batch(run.graph.sources[name][0].operator.schema, queues[name][:size]))
        queues[name] = queues[name][size:]
    outputs += run.close()
    assert sorted(row for item in outputs if isinstance(item, Batch) for row in item.rows) == rows  # type: ignore[type-var]
    (letter,) = run.dead_letters()["reason"].to_pylist()
    assert letter.startswith(f"diverged: {wrong} has nothing where the output has [{missing}, {missing + 1})")


def test_every_divergence_of_a_flow_is_told() -> None:
    """Not only so many of them as a merge by hand keeps."""
    rows = [{"ts": t, "k": "a"} for t in range(3000)]
    flow = pk.Flow().stream("a", rows, time="ts").stream("b", [], time="ts", schema="ts bigint, k string")
    flow.merge("c", ["a", "b"], key=["k"])
    query = flow.query("SELECT * FROM c")
    assert query.collect().num_rows == 3000
    assert query.dead_letters.num_rows == query.counts["failed"] == 3000
