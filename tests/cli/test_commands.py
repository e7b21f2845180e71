"""The command line: what a user gets wrong is told in the four parts, never as a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli.inputs import streams
from penstock.errors import StreamError

SQL = "SELECT k, count(*) AS n [RANGE 60, SLIDE 60, WA t] FROM s GROUP BY k"


def penstock(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m penstock` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "penstock", *arguments],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment}, check=False,
    )  # fmt: skip


def test_delimiters_and_time_formats(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("at;k\n01/02/2026 03:04;a\n01/02/2026 03:04;b\nsoon;c\n")
    sql = "SELECT at, k FROM s"
    options = ["--time", "at", "--delimiter", ";", "--time-format", "s=dd/MM/yyyy HH:mm", "--engine", "local", "--json"]
    done = penstock("run", sql, "-s", f"s={path}", *options)
    assert done.returncode == 0, done.stderr
    assert '"2026-02-01T03:04:00+00:00", "k": "a"' in done.stdout
    assert "at is not dd/MM/yyyy HH:mm: 'soon'" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", SQL, "--rows", "-1"], ["check", SQL, "--rows", "0"], ["check", SQL, "--batches", "0"],
        ["run", SQL, "--limit", "-1"], ["demo", "--minutes", "0"], ["papers", "lmerge", "--events", "0"],
        ["bench", "latency", "--rows", "-5"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert arguments[-2] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["run", "nothing.sql"], ["There is no such query", "nothing.sql"]),
        (["run", SQL], ["No stream is given", "-s main=packets.parquet"]),
        (["run", SQL, "-s", "s", "--time", "t"], ["A stream is given as name=path"]),
        (["run", SQL, "-s", "s=none.csv"], ["The time column is not given", "--time ts"]),
        (["run", SQL, "-s", "s=none.csv", "--time", "t"], ["There is no such file", "none.csv"]),
        (["run", SQL, "-s", "s=x.csv", "--time", "t", "--engine", "flink"], ["There is no such engine", "flink"]),
        (["run", SQL, "-s", "s=x.csv", "--time", "t", "--delimiter", "ab"], ["A delimiter is a single", "'ab'"]),
        (["run", SQL, "-s", "s=x.csv", "--time", "t", "--time-format", "epoch"], ["Unknown unit of an epoch"]),
        (["run", SQL, "-s", "s=x.csv", "--time", "t", "--progress", "soon()"], ["Not a progress", "soon()"]),
        (["run", SQL, "-s", "s=x.csv", "--time", "t", "--schema", "t"], ["A schema is a list of names and types"]),
        (["run", SQL, "-s", "s=x.csv", "--time", "t", "-o", "none/out.csv"], ["Results cannot be written there"]),
        (["run", "x.csv", "-s", "s=x.csv", "--time", "t"], ["This is no statement", "line 1, column 1"]),
    ],
    ids=lambda v: " ".join(v)[:40],
)
def test_what_a_user_gets_wrong_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    parts: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("t,k\n1,a\n")
    engine = [] if "--engine" in arguments else ["--engine", "local"]
    monkeypatch.setattr(sys, "argv", ["penstock", *arguments, *engine])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    for part in parts:
        assert part in told


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["lmerge", "--clock", "wall"], ["Only the experiments of upstream have clocks", "--clock wall"]),
        (["upstream", "--clock", "sun"], ["There is no such clock", "sun", "simulated, wall"]),
        (["upstream", "--figure", "15"], ["There is no such figure", "15", "sharing"]),
        (["stream-mill", "--figure", "13"], ["There is no such figure", "13", "14a, 14b, 15, 16, batches"]),
        (["genmig", "--figure", "3"], ["There is no such figure", "3", "2, 4, 5, 6"]),
    ],
    ids=lambda v: " ".join(v)[:40],
)
def test_experiments_that_there_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], parts: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock", "papers", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    for part in parts:
        assert part in told


def test_without_java_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("t,k\n1,a\n")
    done = penstock("run", SQL, "-s", f"s={tmp_path}/x.csv", "--time", "t", JAVA_HOME="/nowhere", PATH="/usr/bin:/bin")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for part in ("there is no Java that it can use", "JAVA_HOME=/nowhere", "--engine local"):
        assert part in done.stderr


@pytest.mark.parametrize("place", range(1, 6))
def test_an_option_for_a_stream_that_is_not_given_is_told(place: int) -> None:
    given: list[list[str]] = [["main=packets.csv"], ["ts"], ["bounded(rows=100)"], [], [], []]
    assert [s.name for s in streams(*given)] == ["main"]
    given[place] = ["mian=x"]
    with pytest.raises(StreamError, match="for a stream that is not given") as error:
        streams(*given)
    assert (error.value.got, error.value.hint) == ("mian=x", "the streams are main")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["explain"], ["Aggregate count(*)", "in-process: columnar, cost", "Source s (time t, ordered())"]),
        (["run", "--json"], ['"k": "a", "n": 2', '"k": "b", "n": 1']),
        (["run"], ["window_end", "120"]),
    ],
    ids=lambda v: " ".join(v)[:12],
)
def test_a_query_in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    command: list[str], expected: list[str],
) -> None:  # fmt: skip
    path = tmp_path / "x.csv"
    path.write_text("t,k\n61,a\n62,a\n70,b\n")
    arguments = [command[0], SQL, "-s", f"s={path}", "--time", "t", "--engine", "local", *command[1:]]
    monkeypatch.setattr(sys, "argv", ["penstock", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr().out
    assert not ended.value.code
    for part in expected:
        assert part in printed
