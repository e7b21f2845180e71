"""Files as people have them: an error names the file, a line that cannot be read is a dead letter, the rest is read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import PenstockError, SourceError
from penstock.io.files import line_blocks
from penstock.storage.files import place_of


def read(source: Any, sql: str = "SELECT * FROM s", time: str = "t", **options: Any) -> tuple[list[Any], Any]:
    query: Any = pk.Flow().stream("s", source, time=time, progress=pk.bounded(rows=10**6), **options).query(sql)
    rows = query.collect().to_pylist()
    assert query.counts["read"] == sum(v for k, v in query.counts.items() if k != "read")
    return rows, query


def test_what_looks_like_null_is_text(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('t,a,b\n1,NA,NULL\n2,nan,n/a\n3,,""\n4, 7 ,"a, ""b"""\n5,1_000,5" pipe\n')
    rows, _ = read(path)
    assert [tuple(r.values()) for r in rows] == [
        (1, "NA", "NULL"), (2, "nan", "n/a"), (3, None, None), (4, " 7 ", 'a, "b"'), (5, "1_000", '5" pipe'),
    ]  # fmt: skip


def test_lines_that_cannot_be_read_are_dead_letters(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'\xef\xbb\xbft,a\r\n1,x\r2,y,z\n\n3\n4,"open\n5,"a"b\n6,\xff\n   \n7,ok')
    rows, query = read(path)
    assert [tuple(r.values()) for r in rows] == [(1, "x"), (7, "ok")]
    assert sorted(query.dead_letters["reason"].to_pylist()) == [
        "1 fields where 2 were expected", "3 fields where 2 were expected", "a quote does not end on its line",
        "not UTF-8", "text follows the closing quote of a field",
    ]  # fmt: skip
    assert "6,\\xff" in query.dead_letters["row"].to_pylist()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('"ab"c,1', "text follows the closing quote"),
        ('1,"ab" ', "text follows the closing quote"),
        ('"a""b"c,"d', "text follows the closing quote"),
        ('"a","b""', "a quote does not end on its line"),
        ('x"y,"b', "a quote does not end on its line"),
        ('"', "a quote does not end on its line"),
    ],
)
def test_what_is_wrong_with_quotes_is_said(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "x.csv").write_text(f"t,a\n{line}\n1,ok\n")
    _, query = read(tmp_path / "x.csv", schema="t bigint, a string")
    (letter,) = query.dead_letters.to_pylist()
    assert letter["reason"].startswith(reason)


def test_in_a_file_of_one_column_a_quoted_nothing_is_a_record_and_a_blank_line_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('t\n1\n""\n\n  \n4\n')
    rows, query = read(tmp_path / "x.csv")
    assert rows == [{"t": 1}, {"t": 4}]
    assert query.dead_letters["reason"].to_pylist() == ["t is null"]


@pytest.mark.parametrize(("name", "options"), [("x.tsv", {}), ("x.csv", {"delimiter": "\t"})])
def test_other_delimiters(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    (tmp_path / name).write_text("t\ta\n1\tx,y\n\t\n")
    rows, query = read(tmp_path / name, **options)
    assert rows == [{"t": 1, "a": "x,y"}]
    assert query.dead_letters["reason"].to_pylist() == ["t is null"]


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("empty.csv", b"", ["The file is empty", "schema="]),
        ("header.csv", b"t,a\n\n", ["no values to tell the types", "stream s", "t, a", "schema="]),
        ("two.csv", b"t,a,a\n1,2,3\n", ["Two columns have the same name", "two.csv, line 1", "a"]),
        ("nameless.csv", b"t,,b\n1,2,3\n", ["A column has no name", "nameless.csv, line 1", "column 2"]),
        ("quote.csv", b't,"a\n1,2\n', ["The quotes of the header do not match", "quote.csv, line 1"]),
        ("utf16.csv", "t,a\n1,2\n".encode("utf-16"), ["The header is not UTF-8", "utf16.csv, line 1", "UTF-8"]),
        (
            "array.json",
            b'[{"t": 1},{"t": 2}]\n',
            ["No line holds a JSON object", "array.json", "one object per line"],
        ),
        ("cut.csv.gz", gzip.compress(b"t,a\n" + b"1,x\n" * 90_000)[:-20], ["cannot be read", "cut.csv.gz, after line"]),
        ("not.csv.gz", b"t,a\n1,2\n", ["cannot be read", "not.csv.gz, after line 0"]),
        ("x.parquet", b"PAR1", ["The file cannot be read", "x.parquet"]),
        ("zero.parquet", b"", ["The file cannot be read", "zero.parquet"]),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str, content: bytes, parts: list[str]) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PenstockError) as caught:
        read(tmp_path / name)
    for part in parts:
        assert part in caught.value.message


def test_a_file_that_breaks_while_it_is_read_says_how_far_it_came(tmp_path: Path) -> None:
    whole = gzip.compress(b"t,a\n" + b"".join(b"%d,x\n" % i for i in range(2_000_000)), 1)
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-1000])
    query: Any = pk.Flow().stream("s", tmp_path / "cut.csv.gz", time="t", schema="t bigint").query("SELECT t FROM s")
    with pytest.raises(SourceError, match=r"cut\.csv\.gz, after line [1-9]\d+"):
        query.collect()
    assert query.counts["on_time"] > 100_000


def test_declared_columns_must_be_somewhere(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("t,a\n1,x\n")
    (tmp_path / "2.csv").write_text("b,t\ny,2\n")
    rows, _ = read(tmp_path, schema="t bigint, a string, b string")
    assert rows == [{"t": 1, "a": "x", "b": None}, {"t": 2, "a": None, "b": "y"}]
    with pytest.raises(PenstockError, match=r"lacks columns(.|\n)*c"):
        read(tmp_path, schema="t bigint, c string")


def test_parquet_files_that_differ(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"t": pa.array([1], pa.int32()), "x": pa.array([1.5], pa.float32())}), tmp_path / "1.parquet"
    )
    pq.write_table(
        pa.table({"t": pa.array([2**40]), "x": pa.array([2], pa.int64()), "n": [None]}), tmp_path / "2.parquet"
    )
    rows, query = read(f"file://{tmp_path}")
    assert rows == [{"t": 1, "x": 1.5, "n": None}, {"t": 2**40, "x": 2.0, "n": None}]
    assert query.schema.ddl == "`t` bigint, `x` double, `n` string"
    pq.write_table(pa.table({"t": ["soon"], "x": [1.0]}), tmp_path / "3.parquet")
    with pytest.raises(PenstockError, match=r"where: .*3\.parquet\n.*t is string, and bigint in .*2\.parquet"):
        read(tmp_path)


def test_a_delimiter_is_checked(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("t\n1\n")
    for wrong in ("", "ab", '"', "\n", 5, "é"):
        with pytest.raises(PenstockError, match="A delimiter is a single ASCII character"):
            read(tmp_path / "x.csv", delimiter=wrong)
    (tmp_path / "x.jsonl").write_text('{"t": 1}\n')
    with pytest.raises(PenstockError, match="Only files of delimited text"):
        read(tmp_path / "x.jsonl", delimiter=";")


def test_json_text_is_read_into_declared_types(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"t": "1", "s": {"a": [1.50, "é"]}}\n{"t": 2, "s": 7.10}\n{"t": 3, "s": "\\ud800"}\n')
    rows, query = read(path, schema="t bigint, s string")
    assert rows == [{"t": 1, "s": '{"a":[1.50,"é"]}'}, {"t": 2, "s": "7.10"}]
    assert query.dead_letters["reason"].to_pylist() == ["text that cannot be written as UTF-8"]


def test_sources_that_can_be_read_once_say_so() -> None:
    table = pa.table({"t": [1, 2]})
    for source, schema in (
        ((r for r in [{"t": 1}]), "t bigint"),
        (iter([{"t": 1}]), "t bigint"),
        (table.to_reader(), None),
    ):
        query: Any = pk.Flow().stream("s", source, time="t", schema=schema).query("SELECT t FROM s")
        assert query.collect().num_rows
        with pytest.raises(SourceError, match="can be read only once"):
            query.collect()

    class Again:
        def __iter__(self) -> Any:
            return iter([{"t": 1}])

    query = pk.Flow().stream("s", Again(), time="t", schema="t bigint").query("SELECT t FROM s")
    assert query.collect().num_rows == query.collect().num_rows == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
@pytest.mark.parametrize(
    "data", [b"a\r\nb\rc\nd", b"\r\r\n\n", b"long line without an end", b"", b"x\r", b"\n\r\nxyz\r\n"]
)
def test_lines_do_not_depend_on_the_blocks_they_are_read_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, data: bytes
) -> None:
    monkeypatch.setattr("penstock.io.files.BLOCK_BYTES", size)
    (tmp_path / "x.csv").write_bytes(data)
    assert [line for block in line_blocks(place_of(tmp_path / "x.csv")) for line in block] == data.splitlines()


def test_json_that_is_nested_too_deep_is_a_dead_letter(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [f'{{"t": {d}, "s": {"[" * d + "]" * d}}}' for d in (1, 50, 99, 100, 300, 900, 5000, 100_000)]
    path.write_text("\n".join(lines))
    rows, query = read(path, schema="t bigint, s string")
    assert [r["t"] for r in rows] == [1, 50, 99]
    assert query.counts["dead"] == 5


def test_one_odd_time_does_not_change_what_the_others_are(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"t,v\n1,a\n{2**63},b\nsoon,c\n2,d\n")
    (tmp_path / "y.jsonl").write_text('{"t": "2026-01-01"}\n{"t": 5}\n{"t": "soon"}\n')
    rows, query = read(tmp_path / "x.csv")
    assert [r["t"] for r in rows] == [1, 2]
    assert query.counts["dead"] == 2
    rows, query = read(tmp_path / "y.jsonl")
    assert [r["t"].year for r in rows] == [2026]
    assert query.counts["dead"] == 2
    mixed: list[dict[str, Any]] = [{"t": 5}, {"t": "2026-01-01"}, {"t": "soon"}]
    rows, query = read(mixed)
    assert [r["t"].year for r in rows] == [2026]
    assert query.counts["dead"] == 2
