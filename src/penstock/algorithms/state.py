"""Operator state as pages.

An operator keeps all that it must remember in pages, each under a short key, and never elsewhere. In-process the pages
are a dictionary; hosted on Spark they are read from the state store on first touch and written back when they were put.
A snapshot is a copy of the pages. After changing a page in place, `put` it again.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, Protocol

FORMAT_VERSION = 2


class Pages(Protocol):
    """Where an operator keeps its state."""

    def get(self, key: str) -> Any:
        """The page, or None."""

    def put(self, key: str, page: Any) -> None:
        """Keep a page."""

    def delete(self, key: str) -> None:
        """Forget a page; one that is not there is no error."""

    def keys(self) -> Iterator[str]:
        """The keys of all pages, in no order."""


class MemoryPages:
    """Pages in a dictionary."""

    def __init__(self) -> None:
        """Start empty."""
        self.pages: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        """The page, or None."""
        return self.pages.get(key)

    def put(self, key: str, page: Any) -> None:
        """Keep a page."""
        self.pages[key] = page

    def delete(self, key: str) -> None:
        """Forget a page."""
        self.pages.pop(key, None)

    def keys(self) -> Iterator[str]:
        """The keys of all pages."""
        return iter(list(self.pages))

    def snapshot(self) -> bytes:
        """All pages as bytes."""
        return pickle.dumps(self.pages, protocol=5)

    def restore(self, snapshot: bytes) -> None:
        """Replace all pages by those of a snapshot."""
        self.pages = pickle.loads(snapshot)
