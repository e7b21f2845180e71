"""`penstock merge` as a command: what it says, and its exit code."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.errors import StorageError
from penstock.storage.files import place_of
from tests.flow.played_replicas import found, pipeline

ROWS = [(t, "k", 0) for t in range(30)]


def run(*arguments: str) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(app, ["merge", *arguments])
    return result.exit_code, result.output, result.exception


def replicas(tmp_path: Path) -> list[str]:
    for name in "ab":
        each = pipeline(tmp_path / name, ROWS)
        while not each.ended:
            each.write(7)
    return [str(tmp_path / "a"), str(tmp_path / "b"), "--into", f"file://{tmp_path}/out"]


def test_two_folders_become_one(tmp_path: Path) -> None:
    code, output, _ = run(*replicas(tmp_path), "--once", "--json")
    told = json.loads(output.splitlines()[-1])
    assert (code, told["written"], told["ended"], told["bound"]) == (0, 30, True, "end")
    assert found(place_of(tmp_path / "out")) == Counter(ROWS)


def test_it_ends_by_itself_and_says_how_far_it_came(tmp_path: Path) -> None:
    code, output, _ = run(*replicas(tmp_path))
    assert code == 0
    assert "rows of 2 replicas merged into 30" in output
    assert "to their end" in output


def test_a_replica_that_cannot_be_read_is_told_with_an_exit_code(tmp_path: Path) -> None:
    given = replicas(tmp_path)
    (tmp_path / "b" / "_penstock" / "stream.json").write_text("{")
    code, output, _ = run(*given, "--once")
    assert code == 3
    assert "/b: damaged (A file is damaged: it is not JSON." in output.replace("\n", "")
    assert found(place_of(tmp_path / "out")) == Counter(ROWS)


def test_a_new_path_with_an_old_folder_is_refused(tmp_path: Path) -> None:
    given = replicas(tmp_path)
    assert run(*given, "--once")[0] == 0
    code, _, error = run(*given, "--once", "--path", str(tmp_path / "other"))
    assert code == 1
    assert isinstance(error, StorageError)
    with pytest.raises(StorageError, match="belongs to another run"):
        raise error
