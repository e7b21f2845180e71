"""What may be fed to a stream, how its source is opened, and how what goes wrong there is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock.errors import PenstockError, SourceError, StreamError, reason_of
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter
from penstock.model.elements import Punctuation, is_whole
from penstock.model.interrupts import let_through
from penstock.model.plain import NotPlain, encode
from penstock.plan.nodes import Node
from penstock.plan.progressing import progressing
from penstock.runtime.polled import Poll, PolledItems
from penstock.runtime.positions import Handed, ResumableItems

Item = Batch | DeadLetter | Punctuation
"""What a source gives."""
Given = Item | Poll | Handed[Item]
"""The same, or that it has nothing, or what it gave with its position."""
Opener = Callable[[], Iterator[Given]]
"""How it is opened."""


def check_item(source: Node, stream: str, item: object) -> None:
    """What is fed is a batch of the stream, a dead letter, or a punctuation that bounds the stream."""
    if isinstance(item, Batch):
        wanted, got = source.schema, item.schema
        if got is wanted or got.fields == wanted.fields:
            return
        raise StreamError("A batch has other columns than its stream.", where=stream, got=got.ddl, hint=wanted.ddl)
    if isinstance(item, Punctuation):
        known = progressing(source)
        unknown = [name for name, _ in item.bounds if name not in known]
        if unknown:
            one = len(known) == 1
            raise StreamError(
                "A punctuation bounds what is not the stream's time."
                if one
                else "A punctuation bounds what does not progress.",
                where=stream,
                got=", ".join(unknown),
                hint=f"the time is {known[0]}" if one else f"what progresses is {', '.join(known)}",
            )
        return
    if not isinstance(item, DeadLetter):
        raise StreamError(
            "This cannot be fed to a stream.",
            where=stream,
            got=type(item).__name__,
            hint="give a Batch, a Punctuation or a DeadLetter; pusher(stream) takes single rows as tuples",
        )


def promise_of(items: object, stream: str, now: int) -> int | None:
    """What a source that is idle promises, if it can."""
    if not isinstance(items, PolledItems):
        return None
    try:
        bound = items.promise(now)
    except Exception as error:  # it is the user's code
        let_through(error)
        raise failed(stream, error)  # noqa: B904 - which has its cause
    if bound is not None and not is_whole(bound):
        raise StreamError(
            "A promise is a number of ticks.",
            where=f"stream {stream}",
            got=repr(bound)[:200],
            hint="promise(now) gives an integer on the stream's own time, or None",
        )
    return bound


def opened(name: str, sources: Mapping[str, Opener]) -> Iterator[Given]:
    """A source as it is read; that it cannot be opened is told as an error in reading it."""
    opener = sources.get(name.lower()) if isinstance(sources, Mapping) else None
    if not callable(opener):
        raise StreamError("Nothing says how a stream is opened.", where=f"stream {name}", got=repr(opener)[:200])
    try:
        return opener()
    except Exception as error:  # it is the user's code
        let_through(error)
        raise failed(name, error)  # noqa: B904 - which has its cause


def resumable(items: object) -> PolledItems[Item] | ResumableItems[Item] | None:
    """A source that is open, if it can be gone on with."""
    if isinstance(items, ResumableItems) or (isinstance(items, PolledItems) and items.is_resumable):
        return items
    return None


def at_position(name: str, items: object, positions: dict[str, Any]) -> None:
    """Put a source that was just opened to the position that is known of its stream; else keep where it begins."""
    key, found = name.lower(), resumable(items)
    if found is None:
        if key in positions:
            raise StreamError(
                "The snapshot has a position of a stream whose source cannot go back to it.",
                where=f"stream {name}",
                got=repr(positions[key])[:200],
                hint="give the stream the kind of source that it had, with position() and seek(position)",
            )
        return
    try:
        if key in positions:
            found.seek(positions[key])
        else:
            positions[key] = checked_position(name, found.position())
    except Exception as error:  # it is the user's code
        let_through(error)
        raise failed(name, error)  # noqa: B904 - which has its cause


def let_go(opened_: Iterable[object]) -> None:
    """Nobody reads sources that were opened, since another one could not be."""
    for items in opened_:
        if isinstance(items, PolledItems):
            items.close()


def checked_position(name: str, position: Any) -> Any:
    """A position is plain data, or no snapshot could keep it."""
    try:
        encode(position)
    except NotPlain as error:
        raise StreamError(
            "A position is plain data.",
            where=f"stream {name}",
            got=str(error)[:200],
            hint="numbers, texts, lists and dictionaries of them",
        ) from None
    return position


def checked_ahead(live: Mapping[str, int] | None) -> dict[str, int]:
    """How far ahead live sources may be read, by lower-case name."""
    if live is None:
        return {}
    if not isinstance(live, Mapping) or not all(isinstance(n, str) and is_whole(a) and a > 0 for n, a in live.items()):
        raise StreamError(
            "Live streams are given with how many items may be read ahead.", got=repr(live)[:200], hint="{'s': 256}"
        )
    return {name.lower(): ahead for name, ahead in live.items()}


def failed(name: str, error: BaseException) -> PenstockError:
    """What the user's code raises is told with the stream's name; an error of ours says that itself."""
    if isinstance(error, PenstockError):
        return error
    told = SourceError(
        "The source of a stream failed.",
        where=f"stream {name}",
        got=reason_of(error),
        hint="what was read until then is counted; late rows and dead letters are kept",
    )
    told.__cause__ = error
    return told
