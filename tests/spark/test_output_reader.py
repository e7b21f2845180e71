"""The source over an output folder, without a session: micro-batches in order, frontiers after rows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from penstock.engines.spark.folders import MicroBatch, OutputReader, output_stream
from penstock.errors import SourceError
from penstock.model.schema import schema_of
from penstock.storage import folder_log
from penstock.storage.files import place_of
from penstock.storage.folders import OutputFolder, Owner, describe
from tests.storage.test_folders import folder, write

pytestmark = pytest.mark.spark

BATCHES: list[tuple[list[int], int | None]] = [([10, 20], 30), ([], 30), ([30], 40), ([40, 50], 60)]


def written(place: Path, run: str = "run1", batches: list[tuple[list[int], int | None]] = BATCHES) -> str:
    out = folder(place_of(place), run)
    out.claim()
    for number, (rows, frontier) in enumerate(batches):
        write(out, number, rows, frontier)
    return str(place)


def rows(reader: OutputReader, batch: Any) -> list[tuple[object, ...]]:
    return [tuple(r.values()) for table in reader.read(batch) for r in table.to_pylist()]


def test_micro_batches_come_whole_and_their_frontier_after_them(tmp_path: Path) -> None:
    reader = OutputReader(written(tmp_path / "out"))
    begin = reader.initialOffset()
    end = reader.latestOffset(begin)
    assert end == {"run": "run1", "number": 3, "rows": 5}
    batches = reader.partitions(begin, end)
    assert rows(reader, batches[0]) == [(10, "10", False), (20, "20", False), (30, None, True)]
    assert rows(reader, batches[1]) == [(30, None, True)]
    assert reader.latestOffset(end) == end
    assert reader.partitions(end, end) == []


def test_what_is_replayed_is_the_same(tmp_path: Path) -> None:
    reader = OutputReader(written(tmp_path / "out"))
    middle = {"run": "run1", "number": 1}
    assert [p.portion.last for p in reader.partitions(middle, {"run": "run1", "number": 2})] == [2]  # type: ignore[attr-defined]
    assert isinstance(reader.partitions(middle, {"run": "run1", "number": 3})[0], MicroBatch)


@pytest.mark.parametrize("read", range(1, 12))
def test_a_reader_that_is_far_behind_a_compacted_folder_finds_its_place(
    read: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And replays what it had begun to read, though the log does not know any more where micro-batches ended."""
    monkeypatch.setattr(folder_log, "LOOSE", 4)
    monkeypatch.setattr(folder_log, "FAN", 2)
    monkeypatch.setattr(folder_log, "HISTORY", 3)
    out = folder(place_of(tmp_path / "out"), "run1", compact=True)
    out.claim()
    reader, offsets = OutputReader(str(tmp_path / "out")), []
    for number in range(16):
        write(out, number, [number] * (number % 3), number)
        offsets.append(reader.latestOffset(offsets[-1] if offsets else reader.initialOffset()))
    start, middle, end = offsets[read - 1], offsets[read + 2], offsets[-1]
    assert reader.latestOffset(start) == end

    def data(first: dict[str, Any], last: dict[str, Any]) -> list[object]:
        found = [row for p in reader.partitions(first, last) for row in rows(reader, p)]
        return [row[0] for row in found if not row[2]]

    def expected(first: int, last: int) -> list[object]:
        return [n for n in range(first, last) for _ in range(n % 3)]

    assert data(start, end) == expected(read, 16)
    assert data(start, middle) == expected(read, read + 3)
    assert data(middle, end) == expected(read + 3, 16)


def test_an_offset_that_does_not_count_rows_is_told_that_its_place_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_log, "LOOSE", 4)
    monkeypatch.setattr(folder_log, "FAN", 2)
    monkeypatch.setattr(folder_log, "HISTORY", 3)
    out = folder(place_of(tmp_path / "out"), "run1", compact=True)
    out.claim()
    for number in range(16):
        write(out, number, [number], number)
    with pytest.raises(SourceError, match="no longer knows the place up to which it was read"):
        OutputReader(str(tmp_path / "out")).latestOffset({"run": "run1", "number": 1})


def test_a_folder_without_anything_is_waited_for(tmp_path: Path) -> None:
    reader = OutputReader(written(tmp_path / "out", batches=[]))
    assert reader.latestOffset(reader.initialOffset()) == reader.initialOffset()
    assert reader.partitions(reader.initialOffset(), reader.initialOffset()) == []


def test_a_folder_that_was_written_anew_is_told(tmp_path: Path) -> None:
    reader = OutputReader(written(tmp_path / "out"))
    shutil.rmtree(tmp_path / "out")
    written(tmp_path / "out", "run2")
    with pytest.raises(SourceError, match="was written anew") as error:
        reader.latestOffset({"run": "run1", "number": 3})
    assert error.value.got == "run run2 where run run1 was read up to micro-batch 3"
    with pytest.raises(SourceError, match="no longer has what is to be read again"):
        reader.partitions({"run": "run1", "number": 1}, {"run": "run1", "number": 3})


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not the output folder of a query"):
        output_stream(str(tmp_path), patience=0)


def test_rows_that_do_not_show_their_time_are_no_stream(tmp_path: Path) -> None:
    stream = describe(schema_of([("v", "string")]))
    OutputFolder(place_of(tmp_path), Owner("run1", "home", "q", "results"), stream).claim()
    with pytest.raises(SourceError, match="do not show their time"):
        output_stream(str(tmp_path))
