"""What the options of the command line mean: streams, their times and their progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import StreamError
from penstock.model.progress import Ordered, Progress, parse_progress
from penstock.sql.script import CreateStream, read_script

_STATEMENTS = ("SELECT", "WITH", "CREATE", "INSERT")


@dataclass(frozen=True)
class StreamOption:
    """A stream as the command line gives it."""

    name: str
    path: str
    time: str
    progress: Progress
    schema: str | None
    time_format: str | None = None
    delimiter: str | None = None


def read_query(text: str) -> str:
    """SQL from a file, or the argument itself if it is no file."""
    if (text.split(None, 1)[:1] and text.split(None, 1)[0].upper() in _STATEMENTS) or "\n" in text:
        return text
    path = Path(text)
    try:
        if path.is_file():
            return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise StreamError("The query cannot be read.", got=f"{text[:200]}: {error}") from None
    raise StreamError(
        "There is no such query.", got=text[:200], hint="give a file with SQL, or the SQL itself in quotes"
    )


def streams(
    sources: Sequence[str],
    times: Sequence[str],
    progresses: Sequence[str],
    schemas: Sequence[str],
    formats: Sequence[str] = (),
    delimiters: Sequence[str] = (),
) -> list[StreamOption]:
    """The streams of a command; `name=value` is for one stream, a bare value for all."""
    known = [source.partition("=")[0] for source in sources]
    for values in (times, progresses, schemas, formats, delimiters):
        _check_named(values, known)
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
                name,
                path,
                time,
                parse_progress(progress) if progress is not None else Ordered(),
                _pick(schemas, name),
                _pick(formats, name),
                _delimiter(_pick(delimiters, name, bare=False)),
            )
        )
    return found


def check_given(given: Sequence[StreamOption], sql: str) -> None:
    """Refuse a command without streams, unless its script declares some."""
    if not given and not any(isinstance(statement, CreateStream) for statement in read_script(sql)):
        raise StreamError("No stream is given.", hint="-s main=packets.parquet, or CREATE STREAM in the script")


def _delimiter(text: str | None) -> str | None:
    """As a shell can spell it: a backslash and a t, or `tab`, are a tab."""
    return "\t" if text in ("\\t", "tab") else text


def _named(value: str) -> tuple[str | None, str]:
    """The stream that a value is for, if it is for one, and the value."""
    head, separator, tail = value.partition("=")
    if separator and head.strip().isidentifier():
        return head.strip(), tail
    return None, value


def _check_named(values: Sequence[str], known: Sequence[str]) -> None:
    """An option for a stream that is not there would be passed over."""
    for value in values:
        name, _ = _named(value)
        if name is not None and name.lower() not in {k.lower() for k in known}:
            raise StreamError(
                "An option is for a stream that is not given.", got=value, hint=f"the streams are {', '.join(known)}"
            )


def _pick(values: Sequence[str], name: str, *, bare: bool = True) -> str | None:
    """The value for a stream: its own, or the one given for all; `bare` without blanks around it."""
    common = None
    for value in values:
        head, tail = _named(value)
        if head is not None:
            if head.lower() == name.lower():
                return tail.strip() if bare else tail
        else:
            common = value.strip() if bare else value
    return common
