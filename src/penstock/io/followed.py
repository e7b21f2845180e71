"""A file that grows, read as it does: `tail -F` for JSON lines, CSV and plain text.

*Lines*: a last line that has not ended waits until it has. *Rotation*: when another file has the name, and something
is written in it, its writer has left the old one; that is read to its end, then those that were rotated meanwhile
(`log.jsonl.1`, `log.jsonl-20260101`; by the time of their last write), then the new one from its beginning.
*Truncation*: a file shorter than what was read of it is read from its beginning again. A part of a line that either
leaves behind is a dead letter. A file that is not there yet is waited for.

*Position*: the file, as its inode and the checksum of its first bytes, and the offset behind the last line that was
given. `seek` finds a file that was rotated meanwhile by its inode among its neighbours; if it is gone, or shorter, what
it held is lost, and that is an error.
"""

from __future__ import annotations

import logging
import os
import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from typing import Any

from penstock.errors import SourceError, StreamError
from penstock.io.live_lines import (
    MAX_LINE,
    TEXT,
    LineCutter,
    Lines,
    check_function,
    check_text,
    checked_limit,
    line_form,
)
from penstock.model.conform import DeadLetter
from penstock.model.formats import file_kind
from penstock.model.lines import BOM, header_names
from penstock.runtime.polled import END, IDLE

CHUNK = 1 << 16
HEAD = 1024
"""So many bytes at its beginning tell a file from another one that was given its inode."""
ROTATED = re.compile(r"[.-]\d[\d.-]*")
"""How the name of a rotated file goes on."""
LOGGER = logging.getLogger("penstock.sources")


class Followed:
    """A file that grows, as a source that is asked."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str | None,
        delimiter: str | None,
        start: str,
        max_line: int,
        clock: Callable[[], int],
    ) -> None:
        """Made by `follow`."""
        check_text("path", os.fspath(path) if isinstance(path, os.PathLike) else path, "pk.follow")
        check_function("clock", clock, "pk.follow")
        self.path = os.path.abspath(os.fspath(path))
        if self.path.lower().endswith(".gz"):
            raise StreamError(
                "A compressed file cannot be followed.",
                got=self.path,
                hint="give its path to flow.stream, or unpack it",
            )
        if not isinstance(start, str) or start not in ("beginning", "end"):
            raise StreamError(
                "A file is followed from its beginning or its end.", where=self.path, got=repr(start)[:200]
            )
        kind = format if format is not None else file_kind(self.path) or "text"
        if delimiter is None and kind == "csv" and self.path.lower().endswith(".tsv"):
            delimiter = "\t"
        self.form = line_form(kind, delimiter, ("jsonl", "csv", "text"), self.path)
        self.columns = TEXT if kind == "text" else None
        """Of plain text, where no schema is given."""
        self._from_end, self._max = start == "end", checked_limit(max_line, self.path)
        self._clock, self._now = clock, 0
        self._reset()

    def _reset(self) -> None:
        self._file: FileIO | None = None
        self._inode = self._read = 0
        self._header: Sequence[str] | None = None
        self._cutter = LineCutter(self._max)
        self._is_passed = self._is_halted = self._is_placed = False
        self._later: list[str] = []
        """Files that were rotated while another was read, in their order."""

    # What the engine does

    def begin(self, wake: Callable[[], object]) -> None:
        """From where it was put to, or from where it is to start."""
        self._place()

    def halt(self) -> None:
        """What is not read by now stays in the file."""
        self._is_halted = True

    def close(self) -> None:
        """The file is closed; the next time it is read anew."""
        if self._file is not None:
            self._file.close()
        self._reset()

    def position(self) -> dict[str, int]:
        """The file and the offset behind the last line that was given; the inode is 0 if there was no file yet."""
        self._place()
        offset = self._read - self._cutter.pending
        if self._file is None:
            return {"inode": 0, "offset": 0, "head": 0}
        return {"inode": self._inode, "offset": offset, "head": _head(self._file, offset)}

    def seek(self, position: Any) -> None:
        """Go on behind a line that was given before."""
        if not isinstance(position, Mapping) or not {"inode", "offset", "head"} <= position.keys():
            raise StreamError("Not a position in a file.", where=self.path, got=repr(position)[:200])
        self._is_placed, inode, offset = True, position["inode"], position["offset"]
        if inode == 0:
            return
        found = next((p for p in (self.path, *self._rotated()) if _inode(p) == inode), None)
        if found is None:
            raise self._gone(f"inode {inode}, read up to byte {offset}")
        self._open(found, offset)
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_size < offset or _head(self._file, offset) != position["head"]:
            raise self._gone(f"{found} is another file, or shorter than the {offset} bytes that were read")
        if found != self.path:
            self._later = [*self._rotated_after(inode, os.stat(found).st_mtime_ns), self.path]

    def _gone(self, got: str) -> SourceError:
        return SourceError(
            "The file that was being followed is no longer there.",
            where=self.path,
            got=got,
            hint="what it held after that is lost; put it back beside the file, or start without the snapshot",
        )

    def poll(self) -> Any:
        """Lines that have ended since."""
        while not self._is_halted:
            if self._file is None and not self._open_next():
                return IDLE
            assert self._file is not None
            data = self._file.read(CHUNK)
            if data:
                self._read += len(data)
                lines, dead = self._cut(data)
            elif (left := self._at_the_end()) is not None:
                lines, dead = [], left
            else:
                return IDLE
            if lines or dead:
                self._now = max(self._now, self._clock())
                return Lines(self.form, self._header, lines, dead, self._now, self.path)
        return END

    # Lines

    def _cut(self, data: bytes) -> tuple[list[bytes], list[DeadLetter]]:
        lines, dead = self._cutter.cut(data)
        while lines and self.form.kind == "csv" and self._header is None:
            line = lines.pop(0).removeprefix(BOM)
            if line.strip():
                self._header = header_names(line, self.form.delimiter, self.path)
        return lines, dead

    # Files

    def _place(self) -> None:
        """Where it starts, unless it was put elsewhere."""
        if self._is_placed:
            return
        self._is_placed = True
        if os.path.exists(self.path):
            self._open(self.path, _last_line(self.path, self._max) if self._from_end else 0)

    def _open_next(self) -> bool:
        while self._later:
            path = self._later.pop(0)
            if os.path.exists(path):
                return self._open(path, 0)
        return os.path.exists(self.path) and self._open(self.path, 0)

    def _open(self, path: str, offset: int) -> bool:
        try:
            file = open(path, "rb", buffering=0)  # noqa: SIM115 - it stays open until it is left
        except OSError as error:
            raise SourceError("The file cannot be followed.", where=path, got=str(error)) from error
        if self._file is not None:
            self._file.close()
        self._file, self._inode, self._read = file, os.fstat(file.fileno()).st_ino, offset
        self._cutter, self._header, self._is_passed = LineCutter(self._max), None, False
        if offset and self.form.kind == "csv":
            self._header = self._header_of(file)
        file.seek(offset)
        return True

    def _header_of(self, file: FileIO) -> Sequence[str] | None:
        for line in os.pread(file.fileno(), self._max, 0).split(b"\n")[:-1]:
            if line.removeprefix(BOM).strip():
                return header_names(line.removesuffix(b"\r"), self.form.delimiter, self.path)
        return None

    def _at_the_end(self) -> list[DeadLetter] | None:
        """What is left behind in going on with another file, or from the beginning; None if nothing is to be read."""
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_size < self._read:
            LOGGER.warning("%s: shorter than what was read of it, so it is read from its beginning", self.path)
            left = self._cutter.drop("the file was truncated within a line")
            self._file.seek(0)
            self._read, self._header, self._cutter = 0, None, LineCutter(self._max)
            return left
        if not self._later and not self._has_moved_on():
            return None
        if not self._is_passed:  # it was written to until just now, maybe
            self._is_passed = True
            return []
        left = self._cutter.drop("the file was rotated within a line")
        if not self._later:
            self._later = [*self._rotated_after(self._inode, os.fstat(self._file.fileno()).st_mtime_ns), self.path]
        LOGGER.info("%s: rotated; going on with %s", self.path, self._later[0])
        self._file.close()
        self._file = None
        self._open_next()  # so that the position is in a file that follows
        return left

    def _has_moved_on(self) -> bool:
        """Whether something is written in another file of the name."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        return found.st_ino != self._inode and found.st_size > 0

    def _rotated(self) -> list[str]:
        folder, name = os.path.split(self.path)
        others = [other for other in os.listdir(folder) if other.startswith(name)]
        return [os.path.join(folder, other) for other in others if ROTATED.fullmatch(other[len(name) :])]

    def _rotated_after(self, inode: int, written: int) -> list[str]:
        """Files that were rotated after another one, the first one first."""
        found = [(os.stat(path).st_mtime_ns, path) for path in self._rotated() if _inode(path) not in (inode, None)]
        return [path for at, path in sorted(found) if at > written]


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


def _head(file: FileIO, offset: int) -> int:
    return zlib.crc32(os.pread(file.fileno(), min(HEAD, offset), 0))


def _last_line(path: str, most: int) -> int:
    """Where the last line begins that has not ended, or would begin."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        first = file.seek(max(size - most, 0))
        return first + file.read(size - first).rfind(b"\n") + 1


def _wall_clock() -> int:
    return time.time_ns() // 1000


def follow(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    delimiter: str | None = None,
    start: str = "beginning",
    max_line: int = MAX_LINE,
    clock: Callable[[], int] = _wall_clock,
) -> Followed:
    """A file that grows: `flow.stream("log", pk.follow("log.jsonl"), time="ts", schema="ts timestamp, …")`.

    Args:
        path: a local file, which need not be there yet.
        format: `jsonl`, `csv` (with a header) or `text`, which has the columns `at timestamp, line string`; by its
            ending unless it is said.
        delimiter: of the fields of CSV.
        start: `beginning`, or `end` for what is written from now on.
        max_line: a longer line is a dead letter.
        clock: microseconds since 1970, for `at`.
    """
    return Followed(path, format, delimiter, start, max_line, clock)
