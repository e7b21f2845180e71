"""What is declared of a stream: whether it is well formed and fits the columns, and what its progress promises."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from penstock.errors import PenstockError, StreamError
from penstock.flow.user_code import NAME
from penstock.model.convert import encodable
from penstock.model.progress import Bounded, Ordered, PerSource, Progress, Punctuated, Several, Single, span_ticks
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.model.time import Domain
from penstock.plan.catalog import Catalog, closest
from penstock.sql.predicates import punctuation_predicate


def check_name(name: object, what: str, refused: Callable[..., PenstockError] = StreamError) -> None:
    """Refuse what a query or a run cannot be called: it is shown, drawn, and written to files and logs."""
    if not isinstance(name, str) or not name:
        raise refused(f"The name of a {what} is a text.", got=repr(name)[:200])
    if not encodable(name):
        raise refused(
            f"The name of a {what} holds a character that is none.",
            got=ascii(name)[:200],
            hint="a surrogate must stand in a pair",
        )


def check_time_name(name: str, where: str) -> None:
    """Refuse what the time cannot be called: queries, files and other streams know the column by that."""
    if not name.strip():
        raise StreamError("The time column has no name.", where=where, got=f"time={name!r}", hint="name the column")
    if not encodable(name) or any(unicodedata.category(char) == "Cc" for char in name):
        raise StreamError(
            "The name of the time column holds a character that no name can.",
            where=where,
            got=f"time={ascii(name)[:200]}",
            hint="rename the column, without control characters and lone surrogates",
        )


def check_texts(name: object, time: object, *, what: str = "stream", **options: object) -> None:
    """Refuse a name that queries could not use, and what is no text; all but the name and the time may be left out."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise StreamError(
            f"A {what}'s name must be an identifier.", got=repr(name), hint="letters, digits and underscores"
        )
    given = {option: value for option, value in options.items() if value is not None}
    if what == "stream":
        given["time"] = time
    for option, value in given.items():
        if not isinstance(value, str):
            raise StreamError(f"{option} must be a text.", where=f"{what} {name}", got=repr(value))
    if isinstance(time, str):
        check_time_name(time, f"{what} {name}")


@contextmanager
def told_of(name: str, what: str = "stream") -> Iterator[None]:
    """What goes wrong with a stream or a table is told with its name, if it does not say where it was."""
    try:
        yield
    except StreamError as error:
        raise StreamError(error.what, where=error.where or f"{what} {name}", got=error.got, hint=error.hint) from None


def check_progress(catalog: Catalog, name: str, schema: Schema, progress: Progress) -> None:
    """Refuse what the columns of a stream do not have, and lengths that are none of its time."""
    if isinstance(progress, Several):
        for names, how in progress.entries:
            _check_single(catalog, name, schema, how, schema[names[0]].type.domain or Domain.INTEGER)
    else:
        _check_single(catalog, name, schema, progress, schema.domain)


def _check_single(catalog: Catalog, name: str, schema: Schema, progress: Single, domain: Domain) -> None:
    match progress:
        case Punctuated():
            punctuation_predicate(progress, schema, catalog, name)
        case PerSource(column=column) if column not in schema:
            raise StreamError(
                "per_source() names an unknown column.",
                where=f"stream {name}",
                got=column,
                hint=closest(column, schema.names),
            )
        case PerSource(idle=idle, disorder=disorder):
            lengths = [disorder] if idle is None else [disorder, idle]
            for length in lengths:
                span_ticks(length, domain)
        case Bounded(delay=delay) if delay is not None:
            span_ticks(delay, domain)


def of_columns(progress: Several, schema: Schema, max_ahead: str | int | None) -> Several:
    """A progress of several attributes under the names of their columns; what does not go with it is refused."""
    if schema.lives is not None:
        raise StreamError(
            "Rows with lives progress by their start alone.",
            got=f"lives, and progress of {', '.join(progress.attributes)}",
            hint="give one progress, that of the time",
        )
    found = progress.named(lambda name: schema[name].name)
    if len({names for names, _ in found.entries}) < len(found.entries):
        raise StreamError("An attribute is given two progresses.", got=str(progress), hint="one for each")
    if max_ahead is not None:
        raise StreamError(
            "max_ahead is not supported where several attributes progress.",
            got=f"max_ahead={max_ahead!r}, and progress of {', '.join(found.attributes)}",
            hint="leave max_ahead out, or give one progress, that of the time",
        )
    return found


def declared_properties(schema: Schema, progress: Progress, *, insert_only: bool) -> StreamProperties:
    """What a stream's progress promises of it, and its lives."""
    if isinstance(progress, Several):
        of_time = next((how for names, how in progress.entries if names == (schema.time,)), None)
        return StreamProperties() if of_time is None else declared_properties(schema, of_time, insert_only=insert_only)
    if not insert_only:  # in what order adjusts come says nothing of the order of starts
        return StreamProperties(insert_only=False, lifetime=None)
    if schema.lives is not None:
        return replace(declared_properties(replace(schema, lives=None), progress, insert_only=True), lifetime=None)
    match progress:
        case Ordered():
            return StreamProperties(ordered=True, max_disorder=0)
        case Bounded(delay=delay) if delay is not None:
            return StreamProperties(max_disorder=span_ticks(delay, schema.domain))
        case _:
            return StreamProperties()


def declared_unique(name: str, schema: Schema, unique: Sequence[str] | str | None) -> frozenset[str] | None:
    """The columns that tell any two rows of a stream apart, by their own names."""
    if unique is None:
        return None
    if not isinstance(unique, str) and isinstance(unique, Sequence) and not unique:
        raise StreamError("unique names columns.", where=f"stream {name}", got=repr(unique)[:200], hint="unique=['id']")
    return frozenset(named_columns("unique", unique, schema, f"stream {name}"))


def declared_update_key(name: str, schema: Schema, key: Sequence[str] | str | None) -> frozenset[str] | None:
    """The columns by which a row updates the one before it; none of them where each row updates the one before."""
    if key is None:
        return None
    found = named_columns("update_key", key, schema, f"stream {name}")
    if schema.time in found:
        raise StreamError(
            "The time tells every update apart, so it cannot be in the update key.",
            where=f"stream {name}",
            got=str(schema.time),
            hint="name what the updates are of: update_key=['symbol']",
        )
    if schema.lives is not None:
        raise StreamError(
            "Rows with lives of their own are no updates, which live until the next of their key.",
            where=f"stream {name}",
            got="lives, and update_key",
            hint="leave one of them out",
        )
    return frozenset(found)


def named_columns(option: str, given: object, schema: Schema, where: str) -> list[str]:
    """Columns that an option names, by their own names; one may be given as a text."""
    listed = [given]
    if isinstance(given, Iterable) and not isinstance(given, str | bytes) and getattr(given, "ndim", 1) > 0:
        listed = list(given)
    names = [column for column in listed if isinstance(column, str)]
    if len(names) < len(listed):
        raise StreamError(f"{option} names columns.", where=where, got=repr(given)[:200], hint=f"{option}=['id']")
    for column in names:
        if column not in schema:
            known = [field.name for field in schema.visible]
            raise StreamError(
                f"{option} names an unknown column.", where=where, got=column, hint=closest(column, known)
            )
    return [schema[column].name for column in names]
