"""Pages as they are in Spark's state store: read on first touch, written once, under identities, and never trusted."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from penstock.engines.spark.host import StatePages
from penstock.engines.spark.manifest import buckets_at, check_manifest, keep_manifest, kept_at, manifest_of
from penstock.errors import CheckpointError
from penstock.model.batch import Batch, table_of
from penstock.model.elements import linear
from penstock.model.plain import decode, encode
from penstock.model.progress import bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.nodes import WindowAggregate
from penstock.plan.planner import in_process, spark_streaming
from penstock.runtime.builder import Builder
from penstock.runtime.graph import GraphNode, QueryGraph
from penstock.sql.binder import bind
from penstock.storage.files import Place, place_of

SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int")], "ts")
SQL = "SELECT k, max(v) AS m [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k"


class Store:
    """A map of keys to bytes, as Spark's state is, which counts what is asked of it."""

    def __init__(self) -> None:
        self.held: dict[tuple[str], tuple[bytes]] = {}
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.removed: list[str] = []

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        self.reads.append(key[0])
        return self.held.get(key)

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:
        self.writes.append(key[0])
        self.held[key] = value

    def removeKey(self, key: tuple[str]) -> None:
        self.removed.append(key[0])
        self.held.pop(key, None)

    def keys(self) -> Any:
        return iter(self.held)


def catalog() -> Catalog:
    made = Catalog()
    made.add_stream(StreamInfo("s", SCHEMA, bounded(3), StreamProperties()))
    return made


def hosted(store: Store, sql: str = SQL) -> tuple[QueryGraph, list[StatePages]]:
    graph = QueryGraph(in_process(bind(sql, catalog()), catalog()), Builder(catalog()))
    pages = [StatePages(store, node) for node in graph.nodes]
    graph.attach(list(pages))
    return graph, pages


def filled() -> Store:
    store = Store()
    graph, pages = hosted(store)
    graph.push("s", Batch(SCHEMA, [(1, "a", 3), (7, "b", 4)]))
    for own in pages:
        own.flush()
    return store


def aggregate(graph: QueryGraph) -> GraphNode:
    return next(n for n in graph.nodes if n.operator.kind == "columnar panes")


def test_pages_are_plain_data_under_the_operators_identity_with_kind_and_version() -> None:
    store = filled()
    graph, _ = hosted(store)
    by_identity = {n.identity: n for n in graph.nodes}
    assert store.held
    for (key,), (data,) in store.held.items():
        identity, _, page = key.partition("/")
        kind, version, _ = decode(data)
        assert (kind, version) == (by_identity[identity].operator.kind, by_identity[identity].operator.version)
        assert page


def test_a_graph_goes_on_from_the_store_whatever_its_wording() -> None:
    graph, _ = hosted(filled(), SQL.lower().replace("from s", "from S x"))
    graph.close()
    rows = [r for b in graph.drain() if isinstance(b, Batch) for r in b.rows]
    assert sorted((r[2], r[3], r[4]) for r in rows) == [(5, "a", 3), (10, "a", 3), (10, "b", 4), (15, "b", 4)]


def test_only_what_is_touched_is_read_and_only_what_is_put_is_written() -> None:
    store = filled()
    store.reads, store.writes = [], []
    graph, pages = hosted(store)
    node = graph.sources["s"][0]
    assert node.operator.pages.get("progress") == node.operator.pages.get("progress") == 7
    assert store.reads == [f"{node.identity}/progress"]
    for own in pages:
        own.flush()
    assert store.writes == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cannot be read"),
        (pickle.dumps([1]), "cannot be read"),
        (encode({"slide": 1}), "not what its operator writes"),
        (encode([1, 2]), "not what its operator writes"),
        (encode(["columnar panes", 1, {"panes": 1, "colour": 2}]), "not what its operator writes"),
        (encode(["columnar panes", 1, 5]), "not what its operator writes"),
        (encode(["columnar panes", 99, {}]), "newer release"),
        (encode(["columnar panes", None, {}]), "newer release"),
        (encode(["dupelim", 1, {}]), "another algorithm"),
    ],
)
def test_a_page_that_is_something_else_is_told_with_its_operator(data: bytes, said: str) -> None:
    store = filled()
    graph, _ = hosted(store)
    node = aggregate(graph)
    store.held[(f"{node.identity}/slide",)] = (data,)
    with pytest.raises(CheckpointError, match=said) as caught:
        node.operator.pages.get("slide")
    assert "Aggregate max(" in str(caught.value)


def test_what_is_no_plain_data_is_told_when_it_is_written() -> None:
    graph, pages = hosted(Store())
    own = pages[graph.nodes.index(aggregate(graph))]
    own.put("pending", {0: object()})
    with pytest.raises(CheckpointError, match="not plain data") as caught:
        own.flush()
    assert "where: Aggregate max(" in str(caught.value)
    assert "a value of type builtins.object" in str(caught.value)


def manifest(buckets: int = 4, **changed: Any) -> bytes:
    import json

    return json.dumps(
        {**manifest_of(spark_streaming(bind(SQL, catalog()), catalog()), catalog()), "buckets": buckets, **changed}
    ).encode()


def test_a_manifest_is_read_again() -> None:
    now = manifest_of(spark_streaming(bind(SQL, catalog()), catalog()), catalog())
    assert check_manifest(manifest(), now, "home")["buckets"] == 4
    assert check_manifest(manifest(), now, "home", 4)["buckets"] == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "The manifest is damaged or cut short."),
        (manifest()[:-30], "The manifest is damaged or cut short."),
        (b"[]", "The manifest is damaged or cut short."),
        (b"{}", "The manifest is damaged or cut short."),
        (b"\xff\xfe", "The manifest is damaged or cut short."),
        (manifest(named="yes"), "The manifest is damaged or cut short."),
        (manifest(kinds=[]), "The manifest is damaged or cut short."),
        (manifest(kinds={}), "The manifest is damaged or cut short."),
        (manifest(query={}), "The description of the checkpoint is damaged."),
        (manifest(format=2), "The checkpoint has another format."),
        (manifest(buckets=7), "The checkpoint was made with another number of buckets."),
    ],
)
def test_a_manifest_that_cannot_serve_is_told(text: bytes, said: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        check_manifest(text, manifest_of(spark_streaming(bind(SQL, catalog()), catalog()), catalog()), "home", 4)
    assert str(caught.value).startswith(f"{said}\n  where: home")


def test_a_manifest_of_a_newer_or_another_algorithm_is_told_before_anything_starts() -> None:
    now = manifest_of(spark_streaming(bind(SQL, catalog()), catalog()), catalog())
    for had, said in ((["columnar panes", 99], "newer release"), (["wid", 1], "another algorithm")):
        kinds = {i: had if kind == "columnar panes" else [kind, version] for i, (kind, version) in now["kinds"].items()}
        with pytest.raises(CheckpointError, match=said):
            check_manifest(manifest(kinds=kinds), now, "home")


@pytest.mark.parametrize("algorithm", ["wid", "paned", "columnar"])
def test_a_query_goes_on_by_the_algorithm_of_its_manifest(algorithm: str, tmp_path: Path) -> None:
    plan, home, store = bind(SQL, catalog()), place_of(tmp_path), Store()
    first = in_process(plan, catalog(), aggregate=algorithm)
    keep_manifest(home, manifest_of(first, catalog()), None, buckets=4, named=True, sql=SQL)
    planned = spark_streaming(plan, catalog(), kept=kept_at(home))
    check_manifest((home / "manifest.json").read(), manifest_of(planned, catalog()), "home")
    found = [p.algorithm for p in planned.walk() if isinstance(p.node, WindowAggregate)]
    assert found == [algorithm]
    said = [p.how for p in planned.walk() if isinstance(p.node, WindowAggregate)]
    assert ("as the saved state is" in said[0]) == (algorithm != "columnar")
    results: list[Any] = []
    for physical in (first, in_process(plan, catalog(), kept=kept_at(home))):
        graph = QueryGraph(physical, Builder(catalog()))
        pages = [StatePages(store, node) for node in graph.nodes]
        graph.attach(list(pages))
        graph.push("s", Batch(SCHEMA, [(1, "a", 3)] if not results else [(2, "a", 9)]))
        results.append(graph.drain())
        for own in pages:
            own.flush()
    graph.close()
    rows = [row for o in graph.drain() if isinstance(o, Batch) for row in o.rows]
    assert sorted(row[2:5] for row in rows) == [(5, "a", 9), (10, "a", 9)]


def test_a_home_without_a_manifest_that_can_be_read_fixes_nothing(tmp_path: Path) -> None:
    home = place_of(tmp_path)
    assert (kept_at(home).kinds, buckets_at(home)) == ({}, None)
    for damaged in (b"{", b"{}", manifest()[:-9], b'{"format": 2, "kinds": 3}'):
        (home / "manifest.json").write(damaged)
        assert (kept_at(home).kinds, buckets_at(home)) == ({}, None)
    (home / "manifest.json").write(manifest(buckets=7))
    assert buckets_at(home) == 7


def test_a_manifest_serves_a_query_with_another_operator_that_holds_nothing() -> None:
    more = bind(f"SELECT * FROM ({SQL}) i WHERE m > 3", catalog())
    check_manifest(manifest(), manifest_of(spark_streaming(more, catalog()), catalog()), "home")
    doubled = bind(SQL.replace("AS m", "AS m, max(v) + 1 AS more"), catalog())
    with pytest.raises(CheckpointError, match="columns of the result"):
        check_manifest(manifest(), manifest_of(spark_streaming(doubled, catalog()), catalog()), "home")
    distinct = bind(f"SELECT DISTINCT * FROM ({SQL}) i", catalog())
    with pytest.raises(CheckpointError, match="was none, is Distinct"):
        check_manifest(manifest(), manifest_of(spark_streaming(distinct, catalog()), catalog()), "home")


def test_a_manifest_serves_a_query_whose_sub_queries_are_worded_otherwise(tmp_path: Path) -> None:
    outer = "SELECT max({0}) AS top [RANGE 10, SLIDE 5, WA window_end] FROM ({1}) i"
    written, reworded = (bind(outer.format(n, SQL.replace("AS m", f"AS {n}")), catalog()) for n in ("m", "most"))
    home = place_of(tmp_path)
    first = spark_streaming(written, catalog())
    keep_manifest(home, manifest_of(first, catalog()), None, buckets=4, named=True, sql=SQL)
    again = spark_streaming(reworded, catalog(), kept=kept_at(home))
    assert [p.identity for p in again.walk()] == [p.identity for p in first.walk()]
    keep_manifest(home, manifest_of(again, catalog()), None, buckets=4, named=True, sql=SQL)
    with pytest.raises(CheckpointError, match="made by another query"):
        check_manifest(
            (home / "manifest.json").read(), manifest_of(spark_streaming(reworded, catalog()), catalog()), ""
        )


def kept(home: Place, named: bool, asked: int | None = None) -> dict[str, Any]:
    now = manifest_of(spark_streaming(bind(SQL, catalog()), catalog()), catalog())
    return keep_manifest(home, now, asked, buckets=4, named=named, sql=SQL)


def began(home: Place) -> Place:
    (home / "checkpoint" / "offsets" / "0").write(b"v1")
    return home


@pytest.mark.parametrize("named", [False, True])
def test_a_manifest_says_whether_sources_go_by_names(named: bool, tmp_path: Path) -> None:
    home = place_of(tmp_path)
    assert kept(home, named)["buckets"] == 4
    assert kept(began(home), named)["named"] is named
    with pytest.raises(CheckpointError, match="keeps its sources in another way"):
        kept(home, not named)


@pytest.mark.parametrize("named", [False, True])
def test_where_an_earlier_release_kept_how_sources_go(named: bool, tmp_path: Path) -> None:
    home = place_of(tmp_path)
    (home / "manifest.json").write(manifest())
    kept(home, named)  # nothing has run yet
    with pytest.raises(CheckpointError, match="not known how the checkpoint keeps its sources") as lost:
        kept(began(home), named)
    assert (lost.value.got, lost.value.where) == ("no sources.json", str(home))
    for damaged in ([], {}, {"named": "yes"}):
        (home / "sources.json").write_json(damaged)
        with pytest.raises(CheckpointError, match="not known how the checkpoint keeps its sources"):
            kept(home, named)
    (home / "sources.json").write_json({"named": named})
    kept(home, named)
    with pytest.raises(CheckpointError, match="keeps its sources in another way"):
        kept(home, not named)


def test_a_checkpoint_without_its_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="has lost its manifest"):
        kept(began(place_of(tmp_path)), False)


def test_panes_that_come_and_go_in_a_micro_batch_are_not_asked_for_nor_written_nor_removed() -> None:
    store = Store()
    graph, pages = hosted(store)
    graph.push("s", Batch(SCHEMA, table=table_of(SCHEMA, [(at // 100, "a", at) for at in range(1000)])))
    for own in pages:
        own.flush()
    graph, pages = hosted(store)
    store.reads.clear()
    store.writes.clear()
    prefix = f"{aggregate(graph).identity}/p"
    rows = [(8, "b", 9), *((at, "a", 1) for at in range(10, 1000, 5))]
    graph.push("s", Batch(SCHEMA, table=table_of(SCHEMA, rows)))
    graph.push("s", linear("ts", 990))
    for own in pages:
        own.flush()
    asked = [
        key for key in (*store.reads, *store.writes, *store.removed) if key.startswith(prefix) and key[-1].isdigit()
    ]
    assert sorted(asked) == sorted(
        [
            *(f"{prefix}{pane}" for pane in (0, 1)),  # of the micro-batch before: read once
            *(f"{prefix}{pane}" for pane in (0, 1)),  # and removed
            *(f"{prefix}{pane}" for pane in (197, 198, 199)),  # still needed: written
        ]
    )


def test_a_pane_that_was_removed_and_comes_again_is_written_and_removed() -> None:
    store = Store()
    node = aggregate(hosted(store)[0])
    pages = StatePages(store, node)
    for _ in range(2):
        pages.put_new("p1", (1, []))
        pages.flush()
        assert list(store.held) == [(f"{node.identity}/p1",)]
        pages.delete("p1")
        pages.flush()
        assert not store.held
    pages.put_new("p1", (1, []))
    pages.flush()
    later = StatePages(store, node)
    later.delete("p1")
    later.put_new("p1", (2, []))
    later.delete("p1")
    later.flush()
    assert not store.held
