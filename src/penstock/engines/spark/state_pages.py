"""The pages of hosted operators in Spark's state store: read on first touch, written once at the end.

Whatever is asked of the store is a message to another process and its answer. A page that comes and goes within a
micro-batch, as most panes do when micro-batches are long, is not asked for, if its operator knows that it is new, and
neither written nor removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.operators.state import seal, unseal
from penstock.runtime.graph import GraphNode

_ABSENT = object()


class StatePages:
    """The pages of one operator in a Spark map state, with what was touched in this micro-batch at hand."""

    def __init__(self, state: Any, node: GraphNode) -> None:
        """Pages are kept under the identity of the operator."""
        self.state, self.keeper, self.where = state, node.operator, node.label
        self.prefix = f"{node.identity}/"
        self.cache: dict[str, Any] = {}
        self.dirty: set[str] = set()
        self.absent: set[str] = set()
        """Keys that the store is known not to have."""

    def get(self, key: str) -> Any:
        """The page, read once."""
        page = self.cache.get(key, _ABSENT)
        if page is _ABSENT:
            found = self.state.getValue((self.prefix + key,))
            if found is None:
                self.absent.add(key)
            page = None if found is None else unseal(self.keeper, key, bytes(found[0]), self.where)
            self.cache[key] = page
        return page

    def put(self, key: str, page: Any) -> None:
        """Keep a page; it is written by `flush`."""
        self.cache[key] = page
        self.dirty.add(key)

    def put_new(self, key: str, page: Any) -> None:
        """Keep a page under a key that has none."""
        if key not in self.cache:
            self.absent.add(key)
        self.put(key, page)

    def delete(self, key: str) -> None:
        """Forget a page."""
        self.cache[key] = None
        self.dirty.add(key)

    def keys(self) -> Iterator[str]:
        """The keys of all pages, written or not."""
        stored = {k[0][len(self.prefix) :] for k in self.state.keys() if k[0].startswith(self.prefix)}  # noqa: SIM118
        live = {k for k, page in self.cache.items() if page is not None}
        gone = {k for k, page in self.cache.items() if page is None}
        return iter((stored - gone) | live)

    def flush(self) -> None:
        """Write what has changed."""
        for key in self.dirty:
            page = self.cache[key]
            if page is not None:
                self.state.updateValue((self.prefix + key,), (seal(self.keeper, key, page, self.where),))
                self.absent.discard(key)
            elif key not in self.absent:
                self.state.removeKey((self.prefix + key,))
                self.absent.add(key)
        self.dirty.clear()
