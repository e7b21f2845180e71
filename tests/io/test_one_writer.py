"""A file has one writer at a time, and a query never overwrites what it reads."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.cli import main
from penstock.errors import PenstockError, SourceError, StorageError, StreamError
from penstock.storage.files import place_of
from penstock.storage.holding import Hold


def waiting(release: threading.Event, last: int = 2) -> Iterator[dict[str, int]]:
    yield {"t": 1}
    release.wait(60)
    yield {"t": last}


def query(source: Any) -> Any:
    return pk.Flow().stream("s", source, time="t", schema="t bigint").query("SELECT t FROM s")


@pytest.mark.parametrize("role", ["results", "late", "dead_letters"])
def test_a_second_run_on_the_same_file_is_refused_while_the_first_goes_on(tmp_path: Path, role: str) -> None:
    release = threading.Event()
    out, other = tmp_path / "out.csv", tmp_path / "other.csv"
    (tmp_path / "here").symlink_to(tmp_path)
    first = query(waiting(release)).start(out)
    targets: dict[str, Any] = {"results": other, "late": None, "dead_letters": None}
    targets[role] = f"file://{tmp_path}/here/out.csv"
    sink = targets.pop("results")
    again = query([{"t": 100}])
    with pytest.raises(StorageError) as refused:
        again.start(sink, **targets)
    assert refused.value.what == "A file is being written by another run."
    assert refused.value.got == "another run of this process"
    assert "out.csv" in refused.value.where
    assert not other.with_suffix(".csv.partial").exists()
    release.set()
    first.wait()
    assert out.read_text() == '"t"\n1\n2\n'
    again.start(sink, **targets).wait()
    assert not list(tmp_path.glob("*.partial"))


def test_a_failed_run_lets_go_of_its_files(tmp_path: Path) -> None:
    def broken() -> Iterator[dict[str, int]]:
        raise RuntimeError("no")
        yield {}

    with pytest.raises(PenstockError, match="no"):
        query(broken()).start(tmp_path / "out.csv").wait()
    assert not list(tmp_path.iterdir())
    query([{"t": 1}]).start(tmp_path / "out.csv").wait()
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]


_HOLDER = """
import sys
from penstock.storage.files import place_of
from penstock.storage.holding import Hold
hold = Hold(place_of(sys.argv[1]), place_of(sys.argv[1] + ".partial"))
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_file_that_another_process_writes_is_refused_until_it_is_gone(tmp_path: Path) -> None:
    out = str(tmp_path / "out.csv")
    command = [sys.executable, "-c", _HOLDER, out]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StorageError) as refused:
            query([{"t": 1}]).start(out)
        assert refused.value.got == "another process"
    finally:
        other.kill()
        other.wait()
    query([{"t": 1}]).start(out).wait()
    assert Path(out).read_text() == '"t"\n1\n'


def test_a_part_with_content_stays_and_an_empty_one_goes(tmp_path: Path) -> None:
    out, part = place_of(tmp_path / "x.csv"), place_of(tmp_path / "x.csv.partial")
    Hold(out, part).release()
    assert not part.exists()
    part.write(b"of a failed run")
    Hold(out, part).release()
    assert part.read() == b"of a failed run"


OWN = ["data/own.csv", "data/*.csv", "data", "data/**/*.csv", "link/own.csv", "alias.csv"]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "own.csv"
    path.write_text("t\n1\n2\n")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    (tmp_path / "alias.csv").symlink_to(path)
    return path


@pytest.mark.parametrize("source", OWN)
@pytest.mark.parametrize("role", ["results", "late", "dead_letters"])
def test_a_query_does_not_write_what_it_reads(own: Path, source: str, role: str) -> None:
    root = own.parent.parent
    q: Any = pk.Flow().stream("s", root / source, time="t").query("SELECT t FROM s")
    targets: dict[str, Any] = {"results": root / "out.csv", role: own}
    with pytest.raises(SourceError) as refused:
        q.start(targets.pop("results"), **targets)
    assert refused.value.what == "Results cannot be written to what the query reads."
    assert str(own) in refused.value.got
    assert source in refused.value.got
    assert own.read_text() == "t\n1\n2\n"
    assert [p.name for p in own.parent.iterdir()] == ["own.csv"]
    q.start(root / "out.csv").wait()
    assert (root / "out.csv").read_text() == '"t"\n1\n2\n'


@pytest.mark.parametrize("source", ["data", "data/*.csv"])
def test_a_new_file_that_the_stream_would_read_the_next_time_is_refused(own: Path, source: str) -> None:
    q: Any = pk.Flow().stream("s", own.parent.parent / source, time="t").query("SELECT t FROM s")
    with pytest.raises(SourceError, match="Results cannot be written to what the query reads"):
        q.start(own.parent / "new.csv")
    assert [p.name for p in own.parent.iterdir()] == ["own.csv"]


def test_a_stream_that_the_query_does_not_read_may_be_written(own: Path) -> None:
    flow = pk.Flow().stream("s", own, time="t").stream("r", [{"t": 7}], time="t")
    q: Any = flow.query("SELECT t FROM r")
    q.start(own).wait()
    assert own.read_text() == '"t"\n7\n'


@pytest.mark.parametrize("source", OWN)
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_the_command_line_does_not_write_what_it_reads(
    own: Path, source: str, engine: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["-s", f"s={own.parent.parent / source}", "--time", "t", "--engine", engine, "--into", str(own)]
    monkeypatch.setattr(sys, "argv", ["penstock", "run", "SELECT t FROM s", *given])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "Results cannot be written to what the query reads" in capsys.readouterr().err
    assert own.read_text() == "t\n1\n2\n"


def test_two_outputs_of_one_run_in_one_file_are_refused_however_it_is_spelt(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="Two outputs of a query go to one file"):
        query([{"t": 1}]).start(tmp_path / "x.csv", late=f"file://{tmp_path}/x.csv")


def test_a_part_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl.partial").mkdir()
    with pytest.raises(StorageError, match="It was not possible to write a file") as refused:
        Hold(place_of(tmp_path / "out.jsonl"), place_of(tmp_path / "out.jsonl.partial"))
    assert refused.value.where.endswith("out.jsonl.partial")
    (tmp_path / "out.jsonl.partial").rmdir()
    Hold(place_of(tmp_path / "out.jsonl"), place_of(tmp_path / "out.jsonl.partial")).release()
