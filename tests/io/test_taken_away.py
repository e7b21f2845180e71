"""A file that is taken away from the run that writes it: the run fails, and names it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import StorageError
from penstock.io.buffered import BufferedSink
from penstock.io.sinks import FileSink, open_sink

ROLES = ("results", "late", "dead_letters")
BEFORE: list[dict[str, Any]] = [{"t": 1}, {"t": 5}, {"t": 2}, {"t": None}, {"t": 6}]
AFTER: list[dict[str, Any]] = [{"t": 7}, {"t": 3}, {"t": None}]
ROWS = "SELECT t FROM s"


class Held:
    """Gives some rows, then waits until something was done to the files, then gives the others or none."""

    def __init__(self, after: list[dict[str, Any]]) -> None:
        self.rows = iter(BEFORE + after)
        self.left = len(BEFORE)
        self.goes_on = threading.Event()

    def poll(self) -> Any:
        if self.left == 0 and not self.goes_on.is_set():
            return pk.IDLE
        self.left -= 1
        return next(self.rows, pk.END)

    def position(self) -> int:
        return 0

    def seek(self, position: int) -> None: ...


def start(how: str, source: Held, files: dict[str, Path]) -> Any:
    flow = pk.Flow().stream("s", source, time="t", schema="t bigint")
    query = flow.query(ROWS, name="q")
    sides = {role: files[role] for role in ROLES[1:]}
    if how == "query":
        return query.start(files["results"], **sides)
    options = {"snapshots": files["results"].parent / "kept"} if how == "snapshots" else {}
    return flow.start({query: files["results"]}, **sides, **options)


@pytest.mark.parametrize("goes_on", [True, False], ids=["more comes", "nothing more comes"])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("how", ["query", "flow", "snapshots"])
def test_a_part_that_is_deleted_fails_the_run(tmp_path: Path, how: str, ending: str, role: str, goes_on: bool) -> None:
    if how == "snapshots" and ending == "parquet":
        pytest.skip("Parquet files are not gone on with")
    source, files = Held(AFTER if goes_on else []), {each: tmp_path / f"{each}.{ending}" for each in ROLES}
    run = start(how, source, files)
    run.process_available()
    part = tmp_path / f"{role}.{ending}.partial"
    part.unlink()
    source.goes_on.set()
    with pytest.raises(StorageError, match="A file was taken away from the run that writes it") as told:
        run.wait(60)
    assert (told.value.where, told.value.got) == (str(part), "it was deleted, or has another name")
    assert run.status == "failed"
    assert not files[role].exists()
    if how != "query" and role == "results":
        assert run.runs["q"].exception.where == str(part)
    if not goes_on:  # the others were closed all the same
        assert all(files[each].exists() for each in ROLES[1:] if each != role)


def renamed(part: Path) -> None:
    part.rename(part.with_name("elsewhere"))


def exchanged(part: Path) -> None:
    part.unlink()
    part.write_text("x" * 10_000)


def cut(part: Path) -> None:
    os.truncate(part, 3)


def without_folder(part: Path) -> None:
    shutil.rmtree(part.parent)


def behind_a_file(part: Path) -> None:
    shutil.rmtree(part.parent)
    part.parent.write_text("no folder")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("ends", ["close", "abandon", "write"])
@pytest.mark.parametrize(
    ("away", "got"),
    [
        (renamed, "it was deleted, or has another name"),
        (exchanged, "another file has its name"),
        (cut, "it was cut: 3 bytes of"),
        (without_folder, "it was deleted, or has another name"),
        (behind_a_file, "it was deleted, or has another name"),
    ],
)
def test_whatever_is_done_to_a_part_is_told(
    tmp_path: Path, away: Callable[[Path], None], got: str, ends: str, ending: str
) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / f"out.{ending}"
    sink, table = open_sink(target), pa.table({"t": [1, 2, 3]})
    sink.write(table)
    away(tmp_path / "folder" / f"out.{ending}.partial")
    with pytest.raises(StorageError, match="A file was taken away from the run that writes it") as told:
        sink.write(table) if ends == "write" else getattr(sink, ends)()
    assert got in told.value.got
    assert not target.exists()
    if ends == "write":
        with pytest.raises(StorageError, match="A file was taken away"):
            sink.abandon()


def test_a_parquet_part_that_is_cut_is_told(tmp_path: Path) -> None:
    sink = open_sink(tmp_path / "out.parquet")
    for _ in range(2):
        sink.write(pa.table({"t": list(range(20_000))}))
    cut(tmp_path / "out.parquet.partial")
    with pytest.raises(StorageError, match=r"taken away(?s:.*)it was cut: 3 bytes of"):
        sink.write(pa.table({"t": [1]}))


def test_one_that_was_taken_away_before_anything_was_written_is_told(tmp_path: Path) -> None:
    for ends in ("write", "close"):
        sink = open_sink(tmp_path / "out.csv", pa.schema([("t", pa.int64())]))
        (tmp_path / "out.csv.partial").unlink()
        with pytest.raises(StorageError, match="A file was taken away"):
            sink.write(pa.table({"t": [1]})) if ends == "write" else sink.close()
        sink.abandon() if ends == "write" else None


def test_of_several_queries_one_is_told_and_the_others_have_their_files(tmp_path: Path) -> None:
    source = Held(AFTER)
    flow = pk.Flow().stream("s", source, time="t", schema="t bigint")
    names = ("lost", "kept")
    run = flow.start({flow.query(ROWS, name=name): tmp_path / f"{name}.csv" for name in names})
    run.process_available()
    (tmp_path / "lost.csv.partial").unlink()
    source.goes_on.set()
    assert run.wait(60)
    assert [run.runs[name].status for name in names] == ["failed", "finished"]
    with pytest.raises(StorageError, match=r"taken away(?s:.*)lost\.csv\.partial"):
        run.runs["lost"].wait()
    assert (tmp_path / "kept.csv").read_text() == '"t"\n1\n5\n6\n7\n'


def test_a_query_that_was_cut_off_on_purpose_does_not_fail_its_flow(tmp_path: Path) -> None:
    source = Held(AFTER)
    flow = pk.Flow().stream("s", source, time="t", schema="t bigint")
    run = flow.start({flow.query(ROWS, name="q"): tmp_path / "out.csv"}, max_held=5)
    run.process_available()
    run.cut_off("q")
    run.stop()
    assert (run.status, run.runs["q"].status) == ("stopped", "failed")


def test_a_run_that_is_stopped_says_so_too(tmp_path: Path) -> None:
    source = Held(AFTER)
    run = start("flow", source, {role: tmp_path / f"{role}.csv" for role in ROLES})
    run.process_available()
    (tmp_path / "results.csv.partial").unlink()
    with pytest.raises(StorageError, match="A file was taken away"):
        run.stop()
    assert run.status == "failed"


def test_a_sink_that_was_cut_off_and_has_lost_its_file_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, goes_on = threading.Event(), threading.Event()
    written = FileSink.write

    def slowly(sink: FileSink, table: pa.Table) -> None:
        written(sink, table)
        inside.set()
        assert goes_on.wait(60)

    monkeypatch.setattr(FileSink, "write", slowly)
    sink = BufferedSink(open_sink(tmp_path / "out.csv"), 5, "q")
    sink.write(pa.table({"t": [1]}))
    assert inside.wait(60)
    sink.cut(StorageError("enough"))
    assert sink.abandon()
    (tmp_path / "out.csv.partial").unlink()
    goes_on.set()
    sink._thread.join(60)
    assert "run q: and then: A file was taken away from the run that writes it" in caplog.text
