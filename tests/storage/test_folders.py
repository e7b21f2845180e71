"""Output folders: one owner, rows once whatever is interrupted, a bounded log, compaction, readers anywhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StorageError
from penstock.model.schema import schema_of
from penstock.storage import folder_log
from penstock.storage.files import Place, place_of
from penstock.storage.folders import OutputFolder, Owner, Staging, describe, read_file
from penstock.storage.reader import FolderReader, Position
from tests.profiles import examples
from tests.storage.conftest import Places
from tests.storage.killing import FOREVER, Killed, Life, mortal

STREAM = describe(schema_of([("t", "bigint"), ("v", "string")], "t"), ["t"])


def folder(place: Place, run: str = "0123456789", query: str = "q", **options: object) -> OutputFolder:
    return OutputFolder(place, Owner(run, "flows/x", query, "results"), STREAM, **options)  # type: ignore[arg-type]


def table(rows: Iterable[int]) -> pa.Table:
    found = list(rows)
    return pa.table({"t": pa.array(found, pa.int64()), "v": pa.array([str(r) for r in found])})


def write(out: OutputFolder, number: int, rows: list[int], frontier: int | None = None, at: float = 0.0) -> None:
    files = out.named(number, [out.staging.write([table(rows)])]) if rows else ()
    out.publish(number, files, frontier, at)


def seen(place: Place) -> list[int]:
    """What somebody sees who reads the parquet files of the folder and knows nothing else."""
    names = [f"{place.path}/{n}" for n in place.files() if n.endswith(".parquet")]
    tables = [pq.read_table(n, filesystem=place.fs, partitioning=None) for n in names]
    assert {tuple(t.column_names) for t in tables} == {("t", "v")}
    return sorted(t for each in tables for t in each["t"].to_pylist())


def read(reader: FolderReader, position: Position | None) -> tuple[list[int], Position | None, bool]:
    found = reader.after(position)
    rows = [t for p in found.portions for t in reader.rows(p)["t"].to_pylist()]
    return rows, found.portions[-1].position if found.portions else position, found.restarted


def test_a_folder_can_be_read_from_the_first_moment(places: Places) -> None:
    out = folder(places("out"))
    out.claim()
    assert seen(places("out")) == []
    reader = FolderReader(places("out"))
    assert reader.stream() == STREAM
    assert reader.after(None).portions == ()
    write(out, 0, [3, 1], 4)
    (portion,) = reader.after(None).portions
    assert (portion.entry.frontier, portion.entry.greatest) == (4, 3)
    assert read(reader, None) == ([3, 1], Position("0123456789", 0), False)
    assert seen(places("out")) == [1, 3]


def test_a_folder_has_one_owner(places: Places) -> None:
    folder(places("out")).claim()
    folder(places("out")).claim()
    with pytest.raises(StorageError, match="belongs to another run") as error:
        folder(places("out"), run="another", query="other").claim()
    assert error.value.where == str(places("out"))
    assert "results of q, run 01234567, from flows/x" in error.value.got
    assert "a folder of its own" in error.value.hint


@pytest.mark.parametrize("name", ["x.parquet", "batch=000000000/x.parquet"])
def test_rows_that_nobody_owns_are_not_added_to(name: str, places: Places) -> None:
    file = places("out") / name
    file.folder.make_folder()
    file.write(b"")
    with pytest.raises(StorageError, match="rows in this folder that no running query owns") as error:
        folder(places("out")).claim()
    assert error.value.got == (name if name[0] == "x" else "batch=000000000/")


def test_a_publication_that_was_interrupted_is_done_again(places: Places) -> None:
    out = folder(places("out"))
    out.claim()
    files = out.named(0, [out.staging.write([table([1, 2])]), out.staging.write([table([3])])])
    out.staging.write([table([99])])  # of a task that failed
    out.move(files[:1])
    assert seen(places("out")) == [1, 2]
    again = folder(places("out"))
    again.tidy(0, files)
    again.publish(0, files, 5, 0.0)
    again.publish(0, files, 5, 0.0)
    assert seen(places("out")) == [1, 2, 3]
    assert again.staging.folder.files() == []
    assert read(FolderReader(places("out")), None)[0] == [1, 2, 3]


def test_what_failed_tasks_leave_is_removed_while_a_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_log, "LOOSE", 3)
    out = folder(place_of(tmp_path), compact=True)
    out.claim()
    for number in range(6):
        out.staging.write([table([99])])
        write(out, number, [number])
        assert len(out.staging.folder.files()) == (number + 1) % 3
    assert seen(out.place) == list(range(6))


def test_files_that_no_record_names_are_removed(places: Places) -> None:
    out = folder(places("out"))
    out.claim()
    write(out, 0, [1])
    (places("out") / out.final_name(7, 0)).write(b"")
    (places("out") / "notes.txt").write(b"mine")
    out.tidy()
    assert seen(places("out")) == [1]
    assert "notes.txt" in places("out").files()


def test_a_file_that_is_gone_is_told(places: Places) -> None:
    out = folder(places("out"))
    out.claim()
    files = out.named(0, [out.staging.write([table([1])])])
    (out.staging.folder / files[0].staged).delete()
    with pytest.raises(StorageError, match="A file that a record names is gone") as error:
        out.publish(0, files, None, 0.0)
    assert error.value.where.endswith(files[0].name)


def test_a_folder_that_is_not_as_it_was_left_is_refused(places: Places) -> None:
    out = folder(places("out"))
    out.claim()
    out.check(None)
    write(out, 3, [1])
    out.check(3)
    with pytest.raises(StorageError, match="not as the query left it") as error:
        out.check(5)
    assert error.value.got == "it has micro-batches up to 3, the log of the query has micro-batches up to 5"
    with pytest.raises(StorageError, match="not as the query left it") as error:
        folder(places("wiped")).check(5)
    assert "it has nothing" in error.value.got


def test_old_rows_are_forgotten(places: Places) -> None:
    out = folder(places("late"), keep=100.0, clock=lambda: 1000.0)
    out.claim()
    for number in range(10):
        write(out, number, [number], at=850 + 10 * number)
    assert seen(places("late")) == list(range(5, 10))
    assert read(FolderReader(places("late")), None)[0] == list(range(5, 10))


@pytest.mark.parametrize("compact", [False, True])
def test_thousands_of_micro_batches_leave_few_files_of_log(compact: bool, tmp_path: Path) -> None:
    place = place_of(tmp_path / "out")
    out = folder(place, compact=compact)
    out.claim()
    most = 0
    for number in range(600):
        write(out, number, [number] if number % 3 else [], number)
        most = max(most, len(out.log.folder.files()))
    assert most <= folder_log.LOOSE + 3 * folder_log.FAN
    assert read(FolderReader(place), None)[0] == [n for n in range(600) if n % 3]
    assert seen(place) == [n for n in range(600) if n % 3]
    assert len(place.files()) <= (folder_log.LOOSE + 3 * folder_log.FAN if compact else 401)


@examples(20)
@given(st.integers(0, 10**6), st.booleans())
def test_a_reader_has_every_row_once_whatever_is_interrupted(
    tmp_path_factory: pytest.TempPathFactory, seed: int, compact: bool
) -> None:
    """A writer that dies between any two operations on files and is started again; readers that stop and go on."""
    rng = random.Random(seed)
    place = place_of(tmp_path_factory.mktemp("x"))
    written: Counter[int] = Counter()
    found: Counter[int] = Counter()
    with mortal() as life, pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_log, "LOOSE", 3)
        patch.setattr(folder_log, "FAN", 2)
        patch.setattr(folder_log, "HISTORY", rng.choice([0, 4, 100]))
        reader, position = FolderReader(place), None
        out = folder(place, compact=compact)
        out.claim()
        for number in range(25):
            rows = [number * 100 + i for i in range(rng.choice([0, 1, 3]))]
            written.update(rows)
            out = publish_at_last(out, number, rows, compact, life, rng)
            if rng.random() < 0.4:
                rows_read, position, restarted = read(reader, position)
                found = Counter(rows_read) if restarted else found + Counter(rows_read)
        out.tidy()
        rows_read, position, restarted = read(reader, position)
        found = Counter(rows_read) if restarted else found + Counter(rows_read)
    assert found == written
    assert Counter(seen(place)) == written
    assert read(reader, None)[0] == sorted(written)


def publish_at_last(
    out: OutputFolder, number: int, rows: list[int], compact: bool, life: Life, rng: random.Random
) -> OutputFolder:
    """Publish a micro-batch, however often the writer dies on it; the writer that did it."""
    files = out.named(number, [out.staging.write([table(rows)])]) if rows else ()
    life.left = rng.choice([1, 2, 3, 5, FOREVER, FOREVER])
    while True:
        try:
            out.publish(number, files, number, 0.0)
            life.left = FOREVER
            return out
        except Killed:
            assert not [n for n, c in Counter(seen(out.place)).items() if c > 1]
            life.left = rng.choice([1, 3, FOREVER])
            out = folder(out.place, compact=compact)
            try:
                out.tidy(number, files)
            except Killed:
                life.left = FOREVER
                out = folder(out.place, compact=compact)
                out.tidy(number, files)


def test_a_file_that_gets_its_name_between_two_looks_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = folder(place_of(tmp_path))
    out.claim()
    staged = out.staging.write([table([1, 2])])
    (file,) = out.named(0, [staged])
    original, looks = pq.read_table, []

    def look(path: str, **options: object) -> pa.Table:
        looks.append(path)
        if len(looks) == 2:
            out.move([file])  # the writer is faster than the second look
        return original(path, **options)

    monkeypatch.setattr(pq, "read_table", look)
    assert read_file(out.place, file)["t"].to_pylist() == [1, 2]
    assert len(looks) == 3


def test_a_dictionary_is_made_only_of_values_that_repeat(places: Places) -> None:
    schema = schema_of([("t", "bigint"), ("k", "string"), ("w", "timestamp"), ("d", "decimal(9,2)")], "t")
    staging = Staging(places("staging"), describe(schema))
    size = 1000
    rows = pa.table(
        [pa.array(range(size)), pa.array([f"key {i}" for i in range(size)]), [0] * size, [None] * size],
        schema=pa.schema(schema.arrow),
    )
    file = staging.write([rows, rows])
    place = places("staging") / str(file.staged)
    with place.fs.open_input_file(place.path) as opened:
        columns = pq.ParquetFile(opened).metadata.row_group(0)
        has = {columns.column(i).path_in_schema: columns.column(i).has_dictionary_page for i in range(4)}
    assert has == {"t": False, "k": False, "w": True, "d": True}
    assert file.rows == 2 * size
