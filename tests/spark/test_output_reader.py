"""The source over an output folder, without a session: micro-batches in order, bounds after rows, skips by signal."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engines.spark import folders
from penstock.engines.spark.folders import MicroBatch, OutputReader, output_stream, reached_by
from penstock.errors import SourceError

pytestmark = pytest.mark.spark


def written(folder: Path, batches: list[tuple[list[int], int | None]]) -> str:
    """An output folder with so many micro-batches, each with its rows and the bound after it."""
    progress = folder / "_progress"
    progress.mkdir(parents=True)
    about = {"columns": [["end", "bigint"], ["n", "bigint"]], "time": "end", "key": ["n"]}
    (progress / "stream.json").write_text(json.dumps(about))
    for number, (ends, bound) in enumerate(batches):
        if ends:
            part = folder / f"batch={number:09d}"
            part.mkdir()
            pq.write_table(pa.table({"end": ends, "n": ends}), part / "part.parquet")
            (part / "_SUCCESS").touch()
        (progress / f"{number:09d}.json").write_text(json.dumps({"bound": bound, "results": bool(ends)}))
    return str(folder)


BATCHES: list[tuple[list[int], int | None]] = [([10, 20], 30), ([], None), ([30], 40), ([40, 50], 60)]


def rows(reader: OutputReader, batch: MicroBatch) -> list[tuple[object, ...]]:
    return [tuple(r.values()) for table in reader.read(batch) for r in table.to_pylist()]


def test_micro_batches_come_whole_and_their_bound_after_them(tmp_path: Path) -> None:
    reader = OutputReader(written(tmp_path / "out", BATCHES))
    end = reader.latestOffset(reader.initialOffset())
    assert end == {"next": 4}
    batches = reader.partitions({"next": 0}, end)
    assert batches == [MicroBatch(n) for n in range(4)]
    assert rows(reader, batches[0]) == [(10, 10, False), (20, 20, False), (30, None, True)]  # type: ignore[arg-type]
    assert rows(reader, batches[1]) == []  # type: ignore[arg-type]


def test_a_micro_batch_that_is_missing_is_waited_for(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", BATCHES)
    Path(folder, "_progress", "000000002.json").unlink()
    assert OutputReader(folder).latestOffset({"next": 0}) == {"next": 2}


def test_what_lies_before_the_signal_is_not_read(tmp_path: Path) -> None:
    signal = written(tmp_path / "merged", [([10], 20), ([20, 30], 40), ([], None)])
    assert reached_by(signal) == 40
    reader = OutputReader(written(tmp_path / "out", BATCHES), signal)
    batches = reader.partitions({"next": 0}, {"next": 4})
    assert [b.needed for b in batches] == [False, True, False, True]  # type: ignore[attr-defined]
    assert rows(reader, batches[0]) == [(30, None, True)]  # type: ignore[arg-type]
    assert rows(reader, batches[3]) == [(40, 40, False), (50, 50, False), (60, None, True)]  # type: ignore[arg-type]


@pytest.mark.parametrize("gone", ["_SUCCESS", "part.parquet"])
def test_a_micro_batch_that_is_being_written_anew_is_not_taken_for_an_empty_one(gone: str, tmp_path: Path) -> None:
    reader = OutputReader(written(tmp_path / "out", BATCHES))
    (tmp_path / "out" / "batch=000000000" / gone).unlink()
    with mock.patch.object(folders, "TRIES", 1), pytest.raises(SourceError, match="is not whole"):
        rows(reader, MicroBatch(0))


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not the output folder of a query"):
        output_stream(str(tmp_path), patience=0)
