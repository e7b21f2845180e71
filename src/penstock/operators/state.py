"""Operator state as pages.

An operator keeps all that it must remember in pages, each under a short key, and never elsewhere. In-process the pages
are a dictionary; hosted on Spark they are read from the state store on first touch and written back when they were put.
After changing a page in place, `put` it again.

While it is at hand a page may be any object. At the border, where it becomes bytes, the operator turns it into plain
data (`to_plain`) and back (`from_plain`), and the bytes carry the operator's kind and version: a page of another kind,
or of a version that this release does not know, is a `CheckpointError` that says so, and never a wrong answer. Whoever
changes what is in a page gives the operator's next version, and reads the old one in `from_plain`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Protocol

from penstock.errors import CheckpointError
from penstock.model.frontier import Frontier
from penstock.model.plain import NotPlain, decode, encode

FORMAT_VERSION = 3
"""Of snapshots and checkpoints as a whole: how pages are keyed and what is beside them."""
PROMISES = "promises"
"""Pages whose keys begin so hold a `Frontier`, of whatever operator they are."""
_MAGIC = b"penstock"


class Pages(Protocol):
    """Where an operator keeps its state."""

    def get(self, key: str) -> Any:
        """The page, or None."""

    def put(self, key: str, page: Any) -> None:
        """Keep a page."""

    def put_new(self, key: str, page: Any) -> None:
        """Keep a page under a key that has none."""

    def delete(self, key: str) -> None:
        """Forget a page; one that is not there is no error."""

    def keys(self) -> Iterator[str]:
        """The keys of all pages, in no order."""


class MemoryPages:
    """Pages in a dictionary."""

    def __init__(self, pages: dict[str, Any] | None = None) -> None:
        """Start empty, or with what a snapshot held."""
        self.pages: dict[str, Any] = {} if pages is None else pages

    def get(self, key: str) -> Any:
        """The page, or None."""
        return self.pages.get(key)

    def put(self, key: str, page: Any) -> None:
        """Keep a page."""
        self.pages[key] = page

    def put_new(self, key: str, page: Any) -> None:
        """Keep a page under a key that has none."""
        self.pages[key] = page

    def delete(self, key: str) -> None:
        """Forget a page."""
        self.pages.pop(key, None)

    def keys(self) -> Iterator[str]:
        """The keys of all pages."""
        return iter(list(self.pages))


class Versioned(Protocol):
    """What writes state under a kind and a version."""

    kind: str
    """What the state is of, in the papers' words."""
    version: int
    """Of what is in it; 1 at first."""


class Keeper(Versioned, Protocol):
    """What turns pages into plain data and back: an operator."""

    def to_plain(self, key: str, page: Any) -> Any:
        """The page as plain data."""

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The page of plain data that this version, or an earlier one, wrote."""


def seal(keeper: Keeper, key: str, page: Any, where: str) -> bytes:
    """A page as bytes, with the kind and version of its operator; `where` names the operator in an error."""
    plain = plain_page(keeper, key, page, where)
    try:
        return encode([keeper.kind, keeper.version, plain])
    except NotPlain as error:
        raise _not_plain(error, where) from None


def plain_page(keeper: Keeper, key: str, page: Any, where: str) -> Any:
    """A page as plain data; a user's `to_state` takes part in that, and may raise anything."""
    if isinstance(page, Frontier):
        return page.to_plain()
    try:
        return keeper.to_plain(key, page)
    except NotPlain as error:
        raise _not_plain(error, where) from None
    except Exception as error:
        raise CheckpointError(
            "State cannot be kept: turning it into plain data failed.",
            where=f"{where}, page {key}",
            got=f"{type(error).__name__}: {error}",
            hint="see to_state(partial) of the aggregates in the query",
        ) from error


def unseal(keeper: Keeper, key: str, data: bytes, where: str) -> Any:
    """The page of bytes."""
    place = f"{where}, page {key}"
    sealed = decode(data, place)
    if not isinstance(sealed, list) or len(sealed) != 3:
        raise _damaged(place, repr(sealed)[:80])
    return open_page(keeper, key, *sealed, where=where)


def open_page(keeper: Keeper, key: str, kind: Any, version: Any, data: Any, *, where: str) -> Any:
    """The page of plain data that was written under a kind and a version."""
    check_kind(keeper, kind, version, where)
    try:
        if key.startswith(PROMISES):
            return Frontier.from_plain(data)
        return keeper.from_plain(key, data, version)
    except Exception as error:  # a user's from_state takes part in this
        raise _damaged(f"{where}, page {key}", f"{type(error).__name__}: {error}") from error


def check_kind(keeper: Versioned, kind: Any, version: Any, where: str) -> None:
    """Refuse the state of another algorithm, and of a release that is ahead of this one."""
    if kind != keeper.kind:
        raise CheckpointError(
            "The saved state is of another algorithm.",
            where=where,
            got=f"state of {kind!r} where {keeper.kind!r} runs",
            hint="go on with the release that wrote it, or start anew from the sources",
        )
    if not isinstance(version, int) or not 1 <= version <= keeper.version:
        raise CheckpointError(
            "The saved state is of a newer release.",
            where=where,
            got=f"{kind} of version {version}; this release reads up to {keeper.version}",
            hint="upgrade Penstock to the release that wrote it, or start anew from the sources",
        )


def seal_snapshot(content: dict[str, Any], where: str) -> bytes:
    """A snapshot as bytes that are recognised, and known to be whole, before anything in them is read."""
    try:
        body = encode(content)
    except NotPlain as error:
        raise _not_plain(error, where) from None
    return _MAGIC + FORMAT_VERSION.to_bytes(2, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def open_snapshot(snapshot: bytes) -> dict[str, Any]:
    """What is in a snapshot of this format."""
    if not isinstance(snapshot, bytes | bytearray | memoryview):
        raise CheckpointError("A snapshot is bytes.", got=type(snapshot).__name__, hint="give what snapshot() gave")
    data = bytes(snapshot)
    head = len(_MAGIC)
    if data[:head] != _MAGIC:
        raise CheckpointError(
            "These bytes are not a snapshot, or one of an early release.",
            got=f"{len(data)} bytes that begin with {data[:8]!r}",
            hint=f"give what snapshot() gave; before format {FORMAT_VERSION} they were pickles, which are not read",
        )
    version = int.from_bytes(data[head : head + 2], "big")
    if version != FORMAT_VERSION and len(data) >= head + 2:
        raise CheckpointError(
            "The snapshot has another format.", got=f"version {version}", hint=f"this release reads {FORMAT_VERSION}"
        )
    body = data[head + 6 :]
    if len(data) < head + 6 or zlib.crc32(body) != int.from_bytes(data[head + 2 : head + 6], "big"):
        raise CheckpointError(
            "The snapshot is damaged or cut short.", got=f"{len(data)} bytes", hint="use an intact copy of it"
        )
    content = decode(body, "snapshot")
    if not isinstance(content, dict):
        raise _damaged("snapshot", type(content).__name__)
    return content


def _damaged(where: str, got: str) -> CheckpointError:
    return CheckpointError(
        "Saved state is not what its operator writes.", where=where, got=got, hint="use an intact copy of it"
    )


def _not_plain(error: NotPlain, where: str) -> CheckpointError:
    return CheckpointError(
        "State cannot be kept: it is not plain data.",
        where=where,
        got=str(error),
        hint="partials of an aggregate must be numbers, text, bytes, dates, decimals, tuples, lists, sets, "
        "dictionaries or arrays; or give the aggregate to_state(partial) and from_state(data)",
    )
