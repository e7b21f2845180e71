"""Places: what a path or a URI means, and that files are there whole, once, or not at all."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from penstock.errors import StorageError
from penstock.storage.files import place_of
from tests.storage.conftest import Places


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/tmp/x/../y", "/tmp/y"),
        ("file:///tmp/a b", "/tmp/a b"),
        ("file:/tmp/x", "/tmp/x"),
        ("file://localhost/tmp/x/", "/tmp/x"),
        ("FILE:///tmp/x%20y", "/tmp/x%20y"),
    ],
)
def test_paths_and_file_uris_are_the_disk(given: str, path: str) -> None:
    place = place_of(given)
    assert (place.path, place.uri, place.is_local) == (path, f"file://{path}", True)


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert place_of("out").path == str(tmp_path / "out")


def test_s3a_is_s3_here_and_stays_s3a_for_spark(s3: str) -> None:
    place = place_of("s3a://bucket/x/?region=us-east-1")
    assert (place.uri, place.path, place.is_local) == ("s3a://bucket/x", "bucket/x", False)


@pytest.mark.parametrize("uri", ["foo://bucket/x", "dbfs:/x", "s3://"])
def test_what_is_no_file_system_is_an_error_and_not_a_folder(uri: str) -> None:
    with pytest.raises(StorageError, match="no file system for this place") as error:
        place_of(uri)
    assert error.value.got.rstrip("/") == uri.rstrip("/")


def test_an_empty_place_is_refused() -> None:
    with pytest.raises(StorageError, match="A place needs a name"):
        place_of("")


def test_files_are_written_whole_listed_moved_and_deleted(places: Places) -> None:
    folder = places("folder")
    assert folder.files() == []
    (folder / "a").write(b"1")
    (folder / "a").write(b"2")
    assert (folder / "a").read() == b"2"
    assert (folder / "b").put(b"3")
    assert not (folder / "b").put(b"4")
    assert (folder / "b").read() == b"3"
    (folder / "b").move(folder / "a")
    assert (folder.files(), (folder / "a").read()) == (["a"], b"3")
    with pytest.raises(FileNotFoundError):
        (folder / "b").move(folder / "a")
    (folder / "a").delete()
    (folder / "a").delete()
    assert not (folder / "a").exists()
    with pytest.raises(FileNotFoundError):
        (folder / "a").read()


def test_a_place_travels_to_workers(places: Places) -> None:
    sent = pickle.loads(pickle.dumps(places("folder") / "x"))
    sent.write(b"here")
    assert (places("folder") / "x").read() == b"here"


def test_what_is_not_json_is_told(places: Places) -> None:
    file = places("folder") / "x.json"
    file.write(b'{"cut of')
    with pytest.raises(StorageError, match="A file is damaged: it is not JSON") as error:
        file.read_json()
    assert error.value.where == str(file)
    assert "cut of" in error.value.got


def test_what_the_file_system_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "folder"):
        place = place_of(path)
        for doing in (place.make_folder, place.files, lambda place=place: (place / "x").put(b"")):
            with pytest.raises(StorageError, match="There is a file where a folder is needed") as error:
                doing()
            assert "another path" in error.value.hint


def test_a_folder_that_cannot_be_made_is_told_although_nothing_is_there() -> None:
    place = place_of("/proc/nowhere")
    for doing, what in ((place.make_folder, "make a folder"), (lambda: (place / "x").put(b""), "write a file")):
        with pytest.raises(StorageError, match=f"not possible to {what}") as error:
            doing()
        assert "rights" in error.value.hint


def test_a_uri_on_the_same_file_system_is_opened_alike(tmp_path: Path, s3: str) -> None:
    local, remote = place_of(tmp_path / "a b" / "c"), place_of(f"{s3}/x/y") / "a query"
    for place in (local, remote):
        assert place.shares(place.uri) == place
        other = place.shares(f"{place.folder.uri}/not there yet")
        assert other is not None
        assert (other.path, other.fs) == (f"{place.folder.path}/not there yet", place.fs)
    assert local.shares(remote.uri) is None
    assert remote.shares("s3a://another/x") is None
