"""What a checkpoint on Spark belongs to, and whether a query may go on from it.

The manifest is written once, before the first micro-batch: the format, the query's description
(`penstock.query.fingerprint`), the kind and version of every operator's pages, and the number of buckets. It is JSON,
so that people can read it. A refusal says which part differs.
"""

from __future__ import annotations

import json
from typing import Any

from penstock.algorithms.state import FORMAT_VERSION, check_kind
from penstock.engines.local.builder import Builder
from penstock.engines.local.graph import QueryGraph
from penstock.errors import CheckpointError
from penstock.query.catalog import Catalog
from penstock.query.fingerprint import check
from penstock.query.nodes import Node


def manifest_of(plan: Node, catalog: Catalog) -> dict[str, Any]:
    """The manifest of a query, but for the number of its buckets; it goes through JSON unchanged."""
    return {"format": FORMAT_VERSION, **QueryGraph(plan, Builder(catalog, by_row=False)).describe()}


def check_manifest(text: bytes | str, now: dict[str, Any], where: str, buckets: int | None = None) -> dict[str, Any]:
    """The manifest that was saved, unless the query at hand cannot go on from what it belongs to.

    `buckets` is the number that was asked for, if one was.
    """
    saved = _read(text, where)
    if saved["format"] != now["format"]:
        raise CheckpointError(
            "The checkpoint has another format.",
            where=where,
            got=f"version {saved['format']}",
            hint=f"this release reads version {now['format']}; start anew under another name or path",
        )
    check(saved["query"], now["query"], where)
    for identity, (kind, version) in now["kinds"].items():
        had = saved["kinds"].get(identity)
        if had is None or len(had) != 2:
            raise _damaged(where, f"no kind of operator {identity}")
        check_kind(_Pages(kind, version), had[0], had[1], f"{where}, operator {identity}")
    if buckets is not None and saved["buckets"] not in (buckets, 1):
        raise CheckpointError(
            "The checkpoint was made with another number of buckets.", where=where, got=str(buckets),
            hint=f"leave buckets out, which keeps to {saved['buckets']}; or give this query another name",
        )  # fmt: skip
    return saved


class _Pages:
    """A kind and a version, without an operator."""

    def __init__(self, kind: str, version: int) -> None:
        self.kind, self.version = kind, version

    def to_plain(self, key: str, page: Any) -> Any:
        return page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        return data


def _read(text: bytes | str, where: str) -> dict[str, Any]:
    try:
        saved = json.loads(text)
    except ValueError as error:
        raise _damaged(where, str(error)) from None
    if not isinstance(saved, dict) or "format" not in saved:
        raise _damaged(where, "no format in it")
    if saved["format"] == FORMAT_VERSION and not (
        saved.keys() >= {"query", "kinds", "buckets"}
        and isinstance(saved["kinds"], dict)
        and isinstance(saved["buckets"], int)
    ):
        raise _damaged(where, "parts are missing")
    return saved


def _damaged(where: str, got: str) -> CheckpointError:
    return CheckpointError(
        "The manifest is damaged or cut short.", where=where, got=got, hint="put an intact copy of manifest.json back"
    )
