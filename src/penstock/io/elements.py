"""A source of a stream, and lists of rows and elements: inserts, adjusts and punctuation as they are.

A list is looked at as a whole: if something in it lives longer than a tick or is revised, it is a stream with lives. Of
an iterable nothing is known before it is read, so that it may revise must be said (`lives=True`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import cast

from penstock.engines.local.opening import Given, Item, Opener
from penstock.io.files import BATCH_ROWS
from penstock.model.batch import Batch, concat
from penstock.model.conform import DeadLetter, conform_rows
from penstock.model.element_rows import Elements, with_lives
from penstock.model.elements import Adjust, Insert
from penstock.model.schema import Schema


@dataclass(frozen=True)
class LocalSource:
    """A schema and a way to open the input."""

    schema: Schema
    open: Opener
    paths: tuple[str, ...] = ()
    """What was given, where that is files."""
    insert_only: bool = True
    """Whether it is known that nothing is revised."""
    ahead: int | None = None
    """How many items may be read before they are wanted, of a source that may block; others are read when wanted."""
    is_polled: bool = False
    """Whether it is asked for items, and may be idle."""
    is_async: bool = False
    """Whether it is read in an event loop, that of whoever starts a run if there is one."""
    is_resumable: bool = False
    """Whether it can be gone on with from a position."""
    narrowed: Callable[[Collection[str]], Iterator[Given]] | None = None
    """How it is opened by somebody who reads some columns only, if that is less work; the others are null then."""

    def reading(self, columns: Collection[str]) -> Opener:
        """How it is opened by somebody who reads these columns."""
        return self.open if self.narrowed is None else partial(self.narrowed, columns)


def list_source(source: Sequence[object], columns: Schema, *, may_revise: bool) -> LocalSource:
    """A list of rows, elements and punctuation."""
    revised = any(isinstance(e, Adjust) for e in source)
    longer = any(isinstance(e, Insert) and e.ve != e.vs + 1 for e in source)
    form = Elements(with_lives(columns) if may_revise or revised or longer else columns)
    return LocalSource(form.schema, lambda: in_batches(form, source), insert_only=not (may_revise or revised))


def in_batches(form: Elements, items: Sequence[object]) -> Iterator[Item]:
    """Rows and elements in batches, and between them whatever else there is, in the order in which it stands."""
    for start in range(0, len(items), BATCH_ROWS):
        for kind, run in groupby(items[start : start + BATCH_ROWS], _kind):
            if kind == "rows":
                good, dead = conform_rows(form.schema, cast(list[Mapping[str, object]], list(run)))
                yield from dead
                if len(good):
                    yield good
                continue
            made = [item if isinstance(item, DeadLetter) else form.item(item) for item in run]
            yield from (item for item in made if not isinstance(item, Batch))
            batches = [item for item in made if isinstance(item, Batch)]
            if batches:
                yield concat(form.schema, batches)


def _kind(item: object) -> str:
    """What may stand in one batch with its neighbours."""
    if isinstance(item, Mapping):
        return "rows"
    return "elements" if isinstance(item, Insert | Adjust) else "others"
