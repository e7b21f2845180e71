"""What the options of the command line mean: streams, their times and their progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import StreamError
from penstock.model.progress import Ordered, Progress, parse_progress


@dataclass(frozen=True)
class StreamOption:
    """A stream as the command line gives it."""

    name: str
    path: str
    time: str
    progress: Progress
    schema: str | None


def read_query(text: str) -> str:
    """SQL from a file, or the argument itself if it is no file."""
    if text.lstrip()[:6].upper() in ("SELECT", "WITH") or "\n" in text:
        return text
    path = Path(text)
    if not path.is_file():
        raise StreamError("There is no such query.", got=text, hint="give a file with SQL, or the SQL itself in quotes")
    return path.read_text()


def streams(
    sources: Sequence[str], times: Sequence[str], progresses: Sequence[str], schemas: Sequence[str]
) -> list[StreamOption]:
    """The streams of a command; `name=value` is for one stream, a bare value for all."""
    found = []
    for source in sources:
        name, _, path = source.partition("=")
        if not path:
            raise StreamError("A stream is given as name=path.", got=source, hint="-s main=packets.parquet")
        time = _pick(times, name)
        if time is None:
            raise StreamError("The time column is not given.", where=f"stream {name}", hint="--time ts")
        progress = _pick(progresses, name)
        found.append(
            StreamOption(
                name, path, time, parse_progress(progress) if progress is not None else Ordered(), _pick(schemas, name)
            )
        )
    if not found:
        raise StreamError("No stream is given.", hint="-s main=packets.parquet")
    return found


def _pick(values: Sequence[str], name: str) -> str | None:
    """The value for a stream: its own, or the one given for all."""
    common = None
    for value in values:
        head, separator, tail = value.partition("=")
        if separator and head.strip().isidentifier() and "(" not in head:
            if head.strip().lower() == name.lower():
                return tail.strip()
        else:
            common = value.strip()
    return common
