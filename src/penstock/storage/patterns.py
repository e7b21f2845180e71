"""Which files a path, a folder or a pattern stands for, on every file system alike.

A folder stands for all files below it whose names do not begin with `_` or a dot. A pattern is one of Python's `glob`
with `recursive=True`: `*`, `?` and `[…]` stay within a name, `**` stands for any number of folders, none among them,
and a name that begins with a dot is only met by a pattern that does. What a pattern meets may be a folder. A file or
folder that has a pattern's name is itself. In a URI with a host a `?` begins the options and is no part of a pattern.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase

from pyarrow import fs

from penstock.storage.files import Place, place_of

ANY_DEPTH = "**"


def files_of(place: Place) -> list[Place]:
    """The files that there are, sorted by path, each once."""
    if place.is_local:
        found = [place.path] if os.path.exists(place.path) else glob.glob(place.path, recursive=True)
        return [place_of(p) for p in sorted({f for path in found for f in _at_or_below(path)})]
    if place.fs.get_file_info(place.path).type == fs.FileType.File:
        return [place]
    base, pattern = _parts(place)
    inside = place.fs.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
    names = sorted(f.path for f in inside if f.type == fs.FileType.File and _counts(pattern, _below(base, f.path)))
    root = place.uri[: len(place.uri) - len(place.path) + len(base)]
    return [Place(f"{root}{name.removeprefix(base)}", name, place.fs) for name in names]


def stands_for(given: Place, other: Place) -> bool:
    """Whether a path, a folder or a pattern stands for a file, be it there or not, under any of its names."""
    target = real(other)
    if target == real(given) or any(target == real(f) for f in files_of(given)):
        return True
    base, pattern = _parts(given)
    return _counts(pattern, _below(real(Place(base, base, given.fs)), target))


def real(place: Place) -> str:
    """One text for all names of a file or folder: without links on a disk, however the scheme is spelt elsewhere."""
    return os.path.realpath(place.path) if place.is_local else f"{place.fs.type_name}:{place.path}"


def split_pattern(path: str) -> tuple[str, list[str]]:
    """The folder up to the first name that is a pattern, and the names from there on; none if there is no pattern."""
    names = path.split("/")
    at = next((i for i, name in enumerate(names) if glob.has_magic(name)), len(names))
    return "/".join(names[:at]), names[at:]


def meets(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a pattern meets a path, both as names below the same folder."""
    if not pattern:
        return not names
    if pattern[0] == ANY_DEPTH and meets(pattern[1:], names):
        return True
    if not names or (names[0].startswith(".") and not pattern[0].startswith(".")):
        return False
    if pattern[0] == ANY_DEPTH:
        return meets(pattern, names[1:])
    return fnmatchcase(names[0], pattern[0]) and meets(pattern[1:], names[1:])


def meets_file(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether it meets a file, which has nothing below: what ends in any depth meets one name more, at least."""
    return meets([*pattern, "*"] if pattern and pattern[-1] == ANY_DEPTH else pattern, names)


def _parts(place: Place) -> tuple[str, list[str]]:
    """A folder and a pattern below it; what is there is no pattern, whatever its name."""
    there = place.fs.get_file_info(place.path).type != fs.FileType.NotFound
    return (place.path, []) if there else split_pattern(place.path)


def _counts(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a file, by its names below a folder, is met, or has a name that is read in a folder that is met."""
    if meets_file(pattern, names):
        return bool(names)
    return not _is_aside(names[-1]) and any(meets(pattern, names[:i]) for i in range(len(names))) if names else False


def _at_or_below(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path] if os.path.lexists(path) else []  # glob takes what is before ** for found
    return [os.path.join(at, n) for at, _, names in os.walk(path) for n in names if not _is_aside(n)]


def _is_aside(name: str) -> bool:
    return name.startswith(("_", "."))


def _below(base: str, path: str) -> list[str]:
    """The names of a path below a folder; none if it is not there."""
    base = base.rstrip("/") + "/"
    return path.removeprefix(base).split("/") if path.startswith(base) and path != base else []
