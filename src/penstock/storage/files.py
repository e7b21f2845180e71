"""Places: folders and files on any file system that `pyarrow.fs` knows, named by a path or a URI.

A plain path and `file:///…` are the machine's own disk; `s3://`, `gs://`, `abfs://` and `hdfs://` are what they say,
and `s3a://`, as Spark spells it, is `s3://`. Nothing is ever silently a local folder of an odd name: a scheme that is
not known is an error. A place is handed to Spark as `uri`.

What is written is there whole or not at all, and `put` writes only what is not there yet. On a disk both are atomic
(a rename, a hard link). An object store writes whole objects, but pyarrow has no conditional put, so there `put` looks
first: it is safe for the one driver that holds the lease, which every writer here does.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyarrow import fs

from penstock.errors import StorageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_FILE_SYSTEM = re.compile(r"[^/]+://[^/]*/")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
WHOLE_OBJECTS = ("s3", "gcs", "abfs")
"""File systems on which an object appears when it is complete."""


@dataclass(frozen=True)
class Place:
    """A folder or a file."""

    uri: str
    """As Spark is told."""
    path: str = field(compare=False)
    """Within the file system."""
    fs: Any = field(compare=False, repr=False)

    def __truediv__(self, name: str) -> Place:
        """What is called so in this folder."""
        return Place(f"{self.uri}/{name}", f"{self.path}/{name}", self.fs)

    def __str__(self) -> str:
        """As the user would write it."""
        return self.path if self.is_local else self.uri

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return bool(self.fs.type_name == "local")

    @property
    def folder(self) -> Place:
        """The folder that it is in."""
        return Place(self.uri.rsplit("/", 1)[0], self.path.rsplit("/", 1)[0], self.fs)

    def shares(self, uri: str) -> Place | None:
        """The place of a URI if it is on the same file system, with the options that this one was opened with."""
        begin = _FILE_SYSTEM.match(self.uri)
        if begin is None or not uri.startswith(begin[0]):
            return None
        return Place(uri, self.path.removesuffix(self.uri[begin.end() :]) + uri[begin.end() :], self.fs)

    # Reading

    def read(self) -> bytes:
        """The whole content; FileNotFoundError if there is none."""
        with self.told("read"), self.fs.open_input_file(self.path) as file:
            return bytes(file.read())

    def read_json(self) -> Any:
        """The content as JSON."""
        data = self.read()
        try:
            return json.loads(data)
        except ValueError as error:
            raise StorageError(
                "A file is damaged: it is not JSON.",
                where=str(self),
                got=repr(data[:60].decode("utf-8", "replace")),
                hint="restore it from a copy",
            ) from error

    def exists(self) -> bool:
        """Whether there is something."""
        with self.told("look at"):
            return bool(self.fs.get_file_info(self.path).type != fs.FileType.NotFound)

    def files(self) -> list[str]:
        """The names of the files in this folder, sorted; none if there is no such folder."""
        return self._list(fs.FileType.File)

    def sizes(self) -> dict[str, int]:
        """The files in this folder, with how many bytes each has; none if there is no such folder."""
        with self.told("list", "folder"):
            if self.is_local:
                return {name: size for name in self.files() if (size := self._size_on_disk(name)) is not None}
            listed = self.fs.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return {info.base_name: info.size for info in listed if info.type == fs.FileType.File}

    def _size_on_disk(self, name: str) -> int | None:
        try:
            return os.stat(f"{self.path}/{name}").st_size
        except FileNotFoundError:  # it has got another name in the meantime
            return None

    def folders(self) -> list[str]:
        """The names of the folders in this folder, sorted."""
        return self._list(fs.FileType.Directory)

    def _list(self, kind: fs.FileType) -> list[str]:
        with self.told("list", "folder"):
            if self.is_local:
                return self._list_disk(kind)
            found = self.fs.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == kind)

    def _list_disk(self, kind: fs.FileType) -> list[str]:
        """By names alone: looking at every file takes longer, and misses those that have got another name meanwhile."""
        try:
            with os.scandir(self.path) as found:
                return sorted(e.name for e in found if (e.is_file() if kind == fs.FileType.File else e.is_dir()))
        except FileNotFoundError:
            return []

    # Writing

    def write(self, data: bytes) -> None:
        """Write the whole content, in place of what is there."""
        with self.told("write"):
            if self.fs.type_name in WHOLE_OBJECTS:
                self._stream(self.path, data)
                return
            partial = self._partial(data)
            if not self.is_local:
                with contextlib.suppress(FileNotFoundError):
                    self.fs.delete_file(self.path)
            self.fs.move(partial, self.path)

    def write_json(self, value: object) -> None:
        """Write a value as JSON."""
        self.write(json.dumps(value, separators=(",", ":"), allow_nan=False).encode())

    def put(self, data: bytes) -> bool:
        """Write the whole content if there is nothing yet; whether it was so."""
        with self.told("write"):
            if self.is_local:
                partial = self._partial(data)
                try:
                    os.link(partial, self.path)
                    return True
                except FileExistsError:
                    return False
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise
                finally:
                    os.unlink(partial)
            if self.exists():
                return False
            self.write(data)
            return True

    def put_json(self, value: object) -> bool:
        """Write a value as JSON if there is nothing yet; whether it was so."""
        return self.put(json.dumps(value, separators=(",", ":"), allow_nan=False).encode())

    def make_folder(self) -> None:
        """Make this folder, and those above it."""
        with self.told("make", "folder"):
            self._make(self.path)

    def _make(self, folder: str) -> None:
        try:
            self.fs.create_dir(folder, recursive=True)
        except FileNotFoundError as error:  # that something is not there is no reason for what makes it
            raise OSError(str(error)) from error

    def move(self, target: Place) -> None:
        """Give a file another name on the same file system, in place of what is there."""
        with self.told("move"):
            if not self.is_local:
                if not self.exists():
                    raise FileNotFoundError(self.path)
                if self.fs.type_name not in WHOLE_OBJECTS and target.exists():
                    self.fs.delete_file(target.path)
            self.fs.move(self.path, target.path)

    def delete(self) -> None:
        """Delete a file; nothing happens if it is not there."""
        with self.told("delete"), contextlib.suppress(FileNotFoundError):
            self.fs.delete_file(self.path)

    def _partial(self, data: bytes) -> str:
        """The content in a file of another name in the same folder."""
        folder = self.path.rsplit("/", 1)[0]
        partial = f"{folder}/.{uuid.uuid4().hex}.tmp"
        try:
            self._stream(partial, data)
        except FileNotFoundError:
            self._make(folder)
            self._stream(partial, data)
        return partial

    def _stream(self, path: str, data: bytes) -> None:
        with self.fs.open_output_stream(path) as file:
            file.write(data)

    @contextlib.contextmanager
    def told(self, doing: str, what: str = "file") -> Iterator[None]:
        """What the file system refuses is told as an error of ours; that nothing is there is for the caller."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            got = str(error).split(". Detail:")[0]
            if isinstance(error, NotADirectoryError | FileExistsError):
                raise StorageError(
                    "There is a file where a folder is needed.",
                    where=str(self),
                    got=got,
                    hint="give another path, or move the file away",
                ) from error
            raise StorageError(
                f"It was not possible to {doing} a {what}.",
                where=str(self),
                got=got,
                hint="look at its rights, the space left and, on an object store, the credentials and the endpoint",
            ) from error


def place_of(given: str | os.PathLike[str] | Place) -> Place:
    """The place of a path or a URI."""
    if isinstance(given, Place):
        return given
    text = os.fspath(given)
    if not text or "\0" in text:
        raise StorageError(
            "A place needs a name.",
            got=repr(text)[:200] if text else "an empty text",
            hint="give a folder, or a URI such as s3://…",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise StorageError(
            "The name of a place must be UTF-8.", got=ascii(text)[:200], hint="rename the folder or the file"
        ) from None
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _local(os.path.abspath(os.path.expanduser(text)))
    if scheme[1].lower() == "file":
        # As Spark does: no host but this one, and nothing is decoded.
        return _local(os.path.normpath("/" + text[5:].removeprefix("//localhost").lstrip("/")))
    bare, _, options = text.partition("?")
    bare = bare.rstrip("/")
    opened, path = _open(re.sub(r"^s3[an]:", "s3:", bare, flags=re.IGNORECASE) + (f"?{options}" if options else ""))
    return Place(bare, path.rstrip("/"), opened)


def _local(path: str) -> Place:
    # Spark is told the scheme, lest its default file system be another one.
    return Place(f"file://{path}", path, _disk())


@lru_cache(maxsize=1)
def _disk() -> fs.LocalFileSystem:
    return fs.LocalFileSystem()


@lru_cache(maxsize=64)
def _open(uri: str) -> tuple[fs.FileSystem, str]:
    try:
        opened, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StorageError(
            "There is no file system for this place.",
            got=uri.partition("?")[0],
            hint=f"a path, or a URI of file:, s3:, s3a:, gs:, abfs: or hdfs: ({str(error).splitlines()[0]})",
        ) from error
    if not path:
        raise StorageError("There is no file system for this place.", got=uri, hint="it names no bucket and no folder")
    return opened, path
