"""Kinds of files, known by their endings; CSV and JSON lines may be compressed with gzip."""

from __future__ import annotations

_ENDINGS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}


def file_kind(path: str) -> str | None:
    """`parquet`, `csv` or `jsonl`; None if the ending is not known."""
    bare = path.removesuffix(".gz")
    return next((kind for ending, kind in _ENDINGS.items() if bare.endswith(ending)), None)
