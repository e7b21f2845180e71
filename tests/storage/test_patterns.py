"""Patterns mean on every file system what they mean to Python's glob."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.files import place_of
from penstock.storage.patterns import files_of, meets_file, stands_for
from tests.storage.conftest import Places

FILES = ["a.csv", "b/a.csv", "b/c/a.csv", "b/c/x.txt", "b/_aside.csv", "b/.git/a.csv", ".hidden.csv", "d/e/f/g.csv"]
NAMES = st.sampled_from(["a", "b", ".h", "_x", "a.csv", "ab"])
PARTS = st.sampled_from(["**", "*", "a*", "?", "[ab]", "[!a]", "b", ".*", "*.csv", "a"])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**/*.csv", ["a.csv", "b/_aside.csv", "b/a.csv", "b/c/a.csv", "d/e/f/g.csv"]),
        ("b/**/a.csv", ["b/a.csv", "b/c/a.csv"]),
        ("b/**/c/*", ["b/c/a.csv", "b/c/x.txt"]),
        ("*", ["a.csv", "b/.git/a.csv", "b/a.csv", "b/c/a.csv", "b/c/x.txt", "d/e/f/g.csv"]),
        ("d/*/f", ["d/e/f/g.csv"]),
        ("b/**/[!a]*", ["b/_aside.csv", "b/c/a.csv", "b/c/x.txt"]),
        ("none/**", []),
        ("**/none", []),
        ("b/c", ["b/c/a.csv", "b/c/x.txt"]),
        ("a.csv", ["a.csv"]),
    ],
)
def test_files_of_a_pattern(places: Places, pattern: str, expected: list[str]) -> None:
    root = places("root")
    for name in FILES:
        (root / name).write(b"x")
    found = files_of(root / pattern)
    assert [f.path.removeprefix(f"{root.path}/") for f in found] == expected
    assert all(f.uri == f"{root.uri}/{e}" and f.read() == b"x" for f, e in zip(found, expected, strict=True))


@given(st.lists(PARTS, min_size=1, max_size=4), st.lists(NAMES, min_size=1, max_size=4))
def test_a_pattern_meets_what_glob_finds(tmp_path_factory: pytest.TempPathFactory, pattern: list[str],
                                         names: list[str]) -> None:  # fmt: skip
    root = tmp_path_factory.mktemp("glob")
    path = root.joinpath(*names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    found = {p.rstrip("/") for p in glob.glob(os.path.join(root, *pattern), recursive=True) if os.path.exists(p)}
    assert meets_file(pattern, names) == (str(path) in found)


def test_whether_a_source_stands_for_a_file_that_may_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "in.csv").touch()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    (tmp_path / "alias.csv").symlink_to(tmp_path / "data" / "in.csv")

    def stands(given: str, other: str) -> bool:
        return stands_for(place_of(tmp_path / given), place_of(tmp_path / other))

    assert stands("data/in.csv", "data/in.csv")
    assert stands("data/in.csv", "link/in.csv")
    assert stands("data/in.csv", "alias.csv")
    assert stands("alias.csv", "data/in.csv")
    assert stands("data", "data/out.csv")
    assert stands("data", "link/sub/new/out.csv")
    assert stands("link/*.csv", "data/out.csv")
    assert stands("data/**/*.csv", "data/sub/out.csv")
    assert stands("data/*", "data/sub/out.csv")
    assert not stands("data", "data/_out.csv")
    assert not stands("data/*.csv", "data/out.jsonl")
    assert not stands("data/*.csv", "data/sub/out.csv")
    assert not stands("data", "data2/out.csv")
    assert not stands("data/in.csv", "data/in.csv.parquet")
