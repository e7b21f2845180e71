"""Scripts: what they declare, what they give, and errors at their place in the script."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.cli import main
from penstock.errors import PenstockError, QueryError, StreamError, UnsupportedError
from penstock.sql.script import CreateSink, CreateStream, CreateView, InsertInto, QueryStatement, read_script

ROWS = [{"t": 1, "k": "a", "v": 1}, {"t": 2, "k": "a", "v": 2}, {"t": 30, "k": "b", "v": 3}, {"t": 3, "k": "b", "v": 4}]
SCRIPT = """
-- what comes in; a semicolon in a comment ends nothing
CREATE STREAM s (t bigint, k string, v int) WITH (source = '{folder}/in.jsonl', time = 't', progress = 'bounded 5');
CREATE TEMPORARY VIEW big AS SELECT t, k, v FROM s WHERE v > 1 AND k <> ';';
CREATE VIEW counted AS SELECT k, count(*) AS n [TUMBLING 10, WA t] FROM big GROUP BY k;
CREATE SINK out WITH (path = '{folder}/out.jsonl', late = '{folder}/late.jsonl');
INSERT INTO out SELECT k, sum(v) AS total [RANGE 10, SLIDE 10, WA t] FROM big GROUP BY k;
INSERT INTO '{folder}/plain.csv' SELECT t, k FROM s;
SELECT n, window_end AS e FROM counted WHERE n > 0
"""
OUT = [
    {"wid": 0, "window_start": 0, "window_end": 10, "k": "a", "total": 2},
    {"wid": 3, "window_start": 30, "window_end": 40, "k": "b", "total": 3},
]


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return SCRIPT.format(folder=tmp_path)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_script_is_read_statement_by_statement(script: str) -> None:
    kinds = [type(statement) for statement in read_script(script)]
    assert kinds == [CreateStream, CreateView, CreateView, CreateSink, InsertInto, InsertInto, QueryStatement]


def test_a_script_declares_writes_and_gives(script: str, tmp_path: Path) -> None:
    flow = pk.Flow()
    made = flow.sql(script)
    assert not (tmp_path / "out.jsonl").exists()
    assert made.collect().to_pylist() == [{"n": 1, "e": 10}, {"n": 1, "e": 40}]
    assert lines(tmp_path / "out.jsonl") == OUT
    assert [row["row"] for row in lines(tmp_path / "late.jsonl")] == ['{"t": 3, "k": "b", "v": 4}']
    assert (tmp_path / "plain.csv").read_text().splitlines()[1:] == ['1,"a"', '2,"a"', '30,"b"']
    assert [q.sql for q in made.queries] == ["SELECT n, window_end AS e FROM counted WHERE n > 0"]
    assert flow.query("SELECT v FROM big").collect().to_pylist() == [{"v": 2}, {"v": 3}]


def test_a_script_runs_in_the_background(script: str, tmp_path: Path) -> None:
    runs = pk.Flow().sql(script).start()
    assert [run.wait() for run in runs] == [True, True]
    assert lines(tmp_path / "out.jsonl") == OUT


def test_sources_and_sinks_can_be_given_in_python() -> None:
    into: list[dict[str, Any]] = []
    made = pk.Flow().sql(
        "CREATE STREAM s WITH (time = 't', progress = 'bounded 100 rows', max_ahead = 50); "
        "INSERT INTO here SELECT k FROM s; SELECT v FROM s",
        sources={"S": ROWS},
        sinks={"here": into},
    )
    assert [table.to_pylist() for table in made.run()] == [[{"v": 1}, {"v": 2}, {"v": 3}, {"v": 4}]]
    assert into == [{"k": "a"}, {"k": "a"}, {"k": "b"}, {"k": "b"}]


@pytest.mark.parametrize(
    ("words", "progress"),
    [
        ("ordered", pk.ordered()),
        ("bounded 5", pk.bounded(5)),
        ("bounded 100 rows", pk.bounded(rows=100)),
        ("bounded(rows=7)", pk.bounded(rows=7)),
        ("punctuated(\"k = ''p''\")", pk.punctuated("k = 'p'")),
        ("per_source(''k'')", pk.per_source("k")),
    ],
)
def test_progress_in_words_or_as_in_python(words: str, progress: object) -> None:
    flow = pk.Flow()
    flow.sql(f"CREATE STREAM s WITH (time = 't', progress = '{words}')", sources={"s": ROWS})
    assert flow.streams["s"].progress == progress


def test_lengths_of_time_in_words() -> None:
    flow = pk.Flow()
    rows = [{"ts": "2026-01-01T00:00:00", "v": 1}]
    flow.sql("CREATE STREAM s WITH (time = 'ts', progress = 'bounded 5 seconds')", sources={"s": rows})
    assert flow.streams["s"].progress == pk.bounded("5 seconds")


# The caret marks where the error must point; parts of the message follow.
WRONG = [
    ("SELECT t FROM s;\nSELECT ^x FROM s", "Unknown column", "known: t, k, v"),
    ("SELECT t FROM s; SELECT count(*) [RANGE 5, ^SLIDE 0, WA t] FROM s", "SLIDE must be greater"),
    ("SELECT t FROM s;\n SELECT ^, v FROM s", "A column, a value or a function"),
    ("CREATE VIEW a AS SELECT ^1", "FROM is missing"),
    ("CREATE VIEW a ^SELECT t FROM s", "AS is missing"),
    ("CREATE VIEW a AS ^t", "SELECT is expected"),
    ("SELECT t FROM s;\n^CREATE VIEW s AS SELECT t FROM s", "a stream of that name already"),
    ("^CREATE TABLE x (a int)", "The source is not given"),
    ("CREATE TABLE ^'z'", "The name of a table"),
    ("^CREATE INDEX x", "no statement", "CREATE STREAM"),
    ("SELECT t FROM s; ^UPDATE s", "no statement"),
    ("CREATE STREAM ^'z' WITH (time = 't')", "The name of a stream"),
    ("CREATE STREAM z (t ^bigint", "A closing parenthesis"),
    ("CREATE STREAM z ^AS SELECT t FROM s", "WITH is expected"),
    ("CREATE STREAM z WITH (^tme = 't')", "Unknown option", "did you mean time?"),
    ("CREATE STREAM z WITH (time = 't', ^time = 'x')", "given twice"),
    ("CREATE STREAM z WITH (time = ^t)", "A value is expected", "in quotes"),
    ("CREATE STREAM z WITH (time = 't', ^5 = 'x')", "The name of an option"),
    ("CREATE STREAM z WITH (time = 't', progress = ^'bunded 5', source = 'x')", "Not a progress", "bunded 5"),
    ("CREATE STREAM z WITH (time = 't') ^x", "does not belong"),
    ("^CREATE STREAM z WITH (source = 'x')", "The time column is not given", "time = 'ts'"),
    ("^CREATE STREAM z WITH (time = 't')", "The source is not given", "source ="),
    ("^CREATE STREAM z WITH (time = 't', source = 'nowhere.csv')", "There is no such file"),
    ("^CREATE STREAM z (t bigit) WITH (time = 't', source = 'x.csv')", "Unknown type", "bigit"),
    ("CREATE STREAM z WITH (time = 't', source = 'x.csv', format = ^'parquet')", "another format", "they are csv"),
    ("CREATE STREAM z WITH (time = 't', source = 'x.csv', streaming = ^'true')", "In-process", "leave it out"),
    ("CREATE STREAM z WITH (time = 't', source = 'x.csv', spark.header = ^'true')", "Only a streaming source"),
    ("^CREATE SINK z WITH (late = 'x.csv')", "The path is not given"),
    ("CREATE SINK z WITH (path = 'y.csv', max_dead = ^'few')", "A number is expected"),
    ("^INSERT INTO z SELECT t FROM s", "Unknown sink", "CREATE SINK z"),
    ("CREATE SINK zz WITH (path = 'y.csv'); ^INSERT INTO z SELECT t FROM s", "did you mean zz?"),
    ("INSERT INTO 'y.csv' SELECT t FROM s; ^INSERT INTO 'y.csv' SELECT t FROM s", "Two queries write to one sink"),
    (
        "CREATE STREAM z WITH (time = 't', source = 'x.csv'); ^INSERT INTO 'x.csv' SELECT t FROM s",
        "what the query reads",
    ),
    ("INSERT INTO 'y.csv' (t) ^SELECT t FROM s", "does not parse"),
    ("^ ;; ", "The script is empty"),
    ("SELECT t FROM s; SELECT ^'x", "cannot be read"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[0])
def test_errors_point_at_their_place_in_the_script(
    case: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("t,k\n1,a\n")
    flow = pk.Flow().stream("s", ROWS, time="t", progress=pk.bounded(100))
    before = repr(flow)
    marked, *parts = case
    with pytest.raises(QueryError) as caught:
        flow.sql(marked.replace("^", ""))
    for part in parts:
        assert part in caught.value.message
    lead = marked[: marked.index("^")]
    assert (caught.value.line, caught.value.column) == (lead.count("\n") + 1, len(lead.rpartition("\n")[2]) + 1)
    assert marked.replace("^", "").splitlines()[caught.value.line - 1] in caught.value.message  # as it is written
    assert repr(flow) == before


def test_what_an_engine_does_not_support_stays_that() -> None:
    flow = pk.Flow().stream("s", ROWS, time="t")
    with pytest.raises(UnsupportedError):
        flow.sql("SELECT t FROM s; SELECT count(*) AS n [RANGE ALL, SLIDE 5, WA t] FROM s").run()


def test_a_script_without_a_result_says_so() -> None:
    flow = pk.Flow().stream("s", ROWS, time="t")
    with pytest.raises(StreamError, match="no one result"):
        flow.sql("SELECT t FROM s; SELECT k FROM s").collect()
    with pytest.raises(StreamError, match="Nothing is to be written"):
        flow.sql("SELECT t FROM s").start()


@pytest.mark.parametrize("arguments", [["run"], ["run", "--json"], ["explain"]], ids=" ".join)
def test_the_command_runs_a_script(
    script: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    path = tmp_path / "script.sql"
    path.write_text(script)
    monkeypatch.setattr(sys, "argv", ["penstock", arguments[0], str(path), "--engine", "local", *arguments[1:]])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    printed = capsys.readouterr().out
    if arguments == ["explain"]:
        assert "INSERT INTO out\n" in printed
        assert "Source s (time t, bounded(5))" in printed
        return
    assert lines(tmp_path / "out.jsonl") == OUT
    if arguments == ["run"]:
        assert "2 rows -> out" in printed
        return
    found = json.loads(printed)
    assert found["rows"] == [{"n": 1, "e": 10}, {"n": 1, "e": 40}]
    assert [w["rows"] for w in found["written"]] == [2, 3]


def test_every_error_is_one_of_ours() -> None:
    flow = pk.Flow().stream("s", ROWS, time="t")
    for text in (
        "CREATE",
        "CREATE STREAM",
        "CREATE STREAM z WITH (",
        "INSERT INTO",
        "CREATE VIEW v AS",
        "CREATE SINK x WITH ()",
    ):
        with pytest.raises(PenstockError):
            flow.sql(text)
