"""Files that grow: lines as they are appended, rotation, truncation, and positions to go on from."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import PenstockError, SourceError, StreamError
from penstock.io.followed import Followed
from penstock.io.live_lines import LineCutter, Lines

NOON = 1_767_268_800_000_000
"""2026-01-01 12:00 UTC."""


def told(source: Followed) -> list[Any]:
    """The lines and the reasons of dead letters that a source has by now."""
    found: list[Any] = []
    while isinstance(given := source.poll(), Lines):
        found += [*(line.decode() for line in given.lines), *((letter.reason, letter.row) for letter in given.dead)]
    return found


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_lines_come_as_they_are_appended_and_a_part_of_one_waits(tmp_path: Path) -> None:
    log, found = tmp_path / "log.jsonl", []
    flow = pk.Flow().stream("log", pk.follow(log), time="t", schema="t bigint, k string")
    with flow.query("SELECT t, k FROM log").start(found) as run:
        run.process_available()
        assert found == []  # the file is not there yet
        log.write_text('{"t": 1, "k": "a"}\n{"t": 2, "k"')
        run.process_available()
        assert [row["t"] for row in found] == [1]
        append(log, ': "b"}\r\nnonsense\n\n{"t": 3}\n')
        run.process_available()
        assert [(row["t"], row["k"]) for row in found] == [(1, "a"), (2, "b"), (3, None)]
        assert run.dead_letters["reason"].to_pylist() == ["not a JSON object"]
        assert run.dead_letters["stream"].to_pylist() == ["log"]
    assert run.status == "stopped"


def test_csv_has_a_header_and_text_the_time_at_which_it_was_read(tmp_path: Path) -> None:
    table, log = tmp_path / "a.csv", tmp_path / "app.log"
    table.write_text("k;t\nx;1\ny;2;3\n")
    log.write_bytes(b"started\n\xff\xfe\n  \nstopped\n")
    ticks = iter([NOON + 5, NOON, NOON])  # a clock that goes back
    flow = pk.Flow().stream("a", pk.follow(table, delimiter=";"), time="t", schema="t bigint, k string")
    flow.stream("log", pk.follow(log, clock=lambda: next(ticks)), time="at")
    rows: list[Any] = []
    lines: list[Any] = []
    with flow.start({flow.query("SELECT k, t FROM a"): rows, flow.query("SELECT * FROM log"): lines}) as run:
        run.process_available()
        append(log, "again\n")
        append(table, "z;9\n")
        run.process_available()
        letters = sorted((r["stream"], r["reason"]) for r in run.dead_letters.to_pylist())
    assert [(row["k"], row["t"]) for row in rows] == [("x", 1), ("z", 9)]
    assert [row["line"] for row in lines] == ["started", "stopped", "again"]
    assert [row["at"].microsecond for row in lines] == [5, 5, 5]
    assert letters == [("a", "3 fields where 2 were expected"), ("log", "not UTF-8")]


def test_what_a_header_lacks_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t\n1\n")
    flow = pk.Flow().stream("a", pk.follow(tmp_path / "a.csv"), time="t", schema="t bigint, k string")
    run = flow.query("SELECT k, t FROM a").start([])
    with pytest.raises(SourceError, match=r"lacks columns of the schema(?s:.*)a\.csv(?s:.*)got:   k"):
        run.wait()


def test_what_is_written_from_now_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old\nbegun")
    source = pk.follow(log, start="end")
    source.begin(lambda: None)
    assert told(source) == []
    append(log, " and ended\nnew\n")
    assert told(source) == ["begun and ended", "new"]
    source.close()
    early = pk.follow(tmp_path / "later", start="end")
    early.begin(lambda: None)
    (tmp_path / "later").write_text("all of it\n")
    assert told(early) == ["all of it"]
    early.close()


def test_a_rotated_file_is_read_to_its_end_before_the_new_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("1\n2\n")
    source = pk.follow(log)
    source.begin(lambda: None)
    assert told(source) == ["1", "2"]
    log.rename(tmp_path / "log.1")
    log.touch()
    append(tmp_path / "log.1", "3\n")  # its writer has not moved on
    assert told(source) == ["3"]
    append(tmp_path / "log.1", "4\ncut")
    append(log, "5\n")
    assert told(source) == ["4", ("the file was rotated within a line", "cut"), "5"]
    for number in (2, 1):  # twice while nobody looks
        (tmp_path / f"log.{number}").exists() and (tmp_path / f"log.{number}").rename(tmp_path / f"log.{number + 1}")
    log.rename(tmp_path / "log.1")
    log.write_text("6\n")
    at = os.stat(tmp_path / "log.1").st_mtime_ns
    log.rename(tmp_path / "log.0")
    os.utime(tmp_path / "log.0", ns=(at + 10, at + 10))
    log.write_text("7\n")
    (tmp_path / "log.bak").write_text("a copy that is none of it\n")
    assert told(source) == ["6", "7"]
    source.close()


def test_a_truncated_file_is_read_from_its_beginning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "a.csv"
    log.write_text("t,k\n1,a\n2,b")
    source = pk.follow(log)
    source.begin(lambda: None)
    assert told(source) == ["1,a"]
    with log.open("r+") as file:
        file.truncate(0)
    append(log, "k,t\n")
    assert told(source) == [("the file was truncated within a line", "2,b")]
    assert "read from its beginning" in caplog.text
    append(log, "c,3\n")
    given = source.poll()
    assert (list(given.lines), given.header) == ([b"c,3"], ["k", "t"])
    source.close()


def test_it_goes_on_behind_the_last_line_that_was_given(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("t,k\n1,a\n2,b\n3,")
    first = pk.follow(log)
    assert first.position() == {"inode": os.stat(log).st_ino, "offset": 0, "head": 0}
    first.begin(lambda: None)
    assert told(first) == ["1,a", "2,b"]
    position = json.loads(json.dumps(first.position()))
    assert position["offset"] == len("t,k\n1,a\n2,b\n")
    first.close()
    append(log, "c\n")
    log.rename(tmp_path / "a.csv.1")
    log.write_text("k,t\nd,4\n")
    os.utime(log, ns=(2**60, 2**60))
    second = pk.follow(log)
    second.seek(position)
    assert second.position() == position
    second.begin(lambda: None)
    assert told(second) == ["3,c", "d,4"]
    second.close()


def test_a_position_between_files_that_were_rotated(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("1\ncut")
    source = pk.follow(log)
    source.begin(lambda: None)
    assert told(source) == ["1"]
    for at, text in enumerate(("2\n", "3\n")):  # twice while nobody looks
        log.rename(tmp_path / f"log-{at}")
        os.utime(tmp_path / f"log-{at}", ns=(10**18 + at, 10**18 + at))
        log.write_text(text)
    given = source.poll()
    assert [letter.row for letter in given.dead] == ["cut"]
    position = source.position()
    assert position["inode"] == os.stat(tmp_path / "log-1").st_ino
    assert told(source) == ["2", "3"]
    source.close()
    again = pk.follow(log)
    again.seek(position)
    again.begin(lambda: None)
    assert told(again) == ["2", "3"]
    again.close()


def test_what_is_gone_is_told_and_not_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n")
    source = pk.follow(log)
    source.begin(lambda: None)
    assert told(source) == ["one", "two"]
    position = source.position()
    source.close()
    log.write_text("one\n")  # the same inode, shorter
    with pytest.raises(SourceError, match=r"no longer there(?s:.*)shorter"):
        pk.follow(log).seek(position)
    log.write_text("three\nfour\n")  # or another content
    with pytest.raises(SourceError, match="another file"):
        pk.follow(log).seek(position)
    with pytest.raises(SourceError, match=r"inode 1, read up to byte 8"):
        pk.follow(log).seek(position | {"inode": 1})
    with pytest.raises(StreamError, match="Not a position"):
        pk.follow(log).seek([1, 2])
    never = pk.follow(log, start="end")
    never.seek({"inode": 0, "offset": 0, "head": 0})  # there was no file then
    never.begin(lambda: None)
    assert told(never) == ["three", "four"]
    never.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "x.gz"}, "compressed file cannot be followed"),
        ({"path": "x", "start": "middle"}, "from its beginning or its end"),
        ({"path": "x", "format": "xml"}, r"no such format(?s:.*)jsonl or csv or text"),
        ({"path": "x", "max_line": 0}, "at least one"),
        ({"path": 5}, "The path is a text"),
        ({"path": "x", "clock": 5}, "The clock is a function"),
        ({"path": "x.jsonl", "delimiter": ";"}, "Only files of delimited text"),
    ],
)
def test_what_cannot_be_followed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        pk.follow(**options)


def test_a_file_that_cannot_be_read_is_told_with_its_stream(tmp_path: Path) -> None:
    flow = pk.Flow().stream("log", pk.follow(tmp_path, format="text"), time="at")
    with pytest.raises(SourceError, match="The file cannot be followed"):
        flow.query("SELECT line FROM log").collect()


def test_a_line_that_is_too_long_is_a_dead_letter_and_not_held(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("short\n" + "x" * 5000 + "\nnext\n")
    source = pk.follow(log, max_line=1000)
    source.begin(lambda: None)
    assert told(source) == ["short", "next", ("a line of 5000 bytes, where 1000 are allowed", "x" * 200)]
    source.close()


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6), st.integers(1, 12))
def test_however_they_are_cut_the_lines_are_the_same(data: bytes, cuts: list[int], most: int) -> None:
    *ended, rest = data.split(b"\n")
    cutter, lines, dead = LineCutter(most), [], []
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in pairwise(places):
        more, letters = cutter.cut(data[begin:end])
        lines += more
        dead += letters
    assert lines == [line.removesuffix(b"\r") for line in ended if len(line) <= most]
    assert [letter.reason.split()[3] for letter in dead] == [str(len(line)) for line in ended if len(line) > most]
    assert cutter.pending == len(rest)
