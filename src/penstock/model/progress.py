"""How a stream's progress is known: the configuration that a user gives with a stream.

Each is turned into punctuation on the stream's time attribute by an algorithm of the same name. Idleness is measured in
the stream's own time, so that a replay gives the same punctuation as the live run.

Several attributes of a stream may progress, each in its own way and in its own domain (`Several`). Punctuation that is
declared for some of them together is joint: what a row is below in all of them can no longer come.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.errors import StreamError
from penstock.model.estimated import Estimated, estimated
from penstock.model.time import Domain, Length, length_ticks
from penstock.model.timer import Timer, timer


@dataclass(frozen=True)
class Ordered:
    """Rows come in order of time; a row behind the one before it is late."""

    def __str__(self) -> str:
        """As written by the user."""
        return "ordered()"


@dataclass(frozen=True)
class Bounded:
    """A row comes at most `delay` behind the greatest time, or at most `rows` rows after one that is later in time."""

    delay: Length | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        """Exactly one of the two bounds, and not a negative one."""
        if (self.delay is None) == (self.rows is None):
            raise StreamError(
                "bounded() takes a length of time or a number of rows, one of the two.",
                got=f"bounded({self.delay!r}, rows={self.rows!r})",
                hint="bounded('5 seconds') or bounded(rows=100)",
            )
        if self.rows is not None and (isinstance(self.rows, bool) or not isinstance(self.rows, int)):
            raise StreamError("bounded(rows=…) takes a number of rows.", got=repr(self.rows), hint="bounded(rows=100)")
        if self.rows is not None and self.rows < 0:
            raise StreamError("bounded(rows=…) cannot be negative.", got=str(self.rows))
        if self.delay is not None:
            span_ticks(self.delay, None)

    def __str__(self) -> str:
        """As written by the user."""
        return f"bounded({self.delay!r})" if self.rows is None else f"bounded(rows={self.rows})"


@dataclass(frozen=True)
class Punctuated:
    """Rows for which `predicate` holds are punctuation: their time is a bound.

    It is the bound of the whole stream, or, where the row has values in columns of `per`, of the rows with these values
    alone; null there stands for any value. With `final`, such a row says that nothing more of its group comes at all,
    whatever its time. A punctuation row that carries values besides might be meant for the rows with these values
    alone, and is refused as a dead letter, unless `whole_stream` says that such values mean nothing.
    """

    predicate: str
    whole_stream: bool = False
    per: tuple[str, ...] = ()
    final: bool = False

    def __post_init__(self) -> None:
        """The predicate is SQL text, and what is said of groups needs columns that tell them apart."""
        if not isinstance(self.predicate, str) or not self.predicate.strip():
            raise StreamError(
                "punctuated() takes a condition in SQL.",
                got=repr(self.predicate),
                hint="punctuated(\"kind = 'punct'\")",
            )
        if len({name.lower() for name in self.per}) < len(self.per):
            raise StreamError("punctuated(per=…) names a column twice.", got=repr(list(self.per)))
        if self.final and not self.per:
            raise StreamError(
                "punctuated(final=True) says that groups end, so it needs the columns that tell them apart.",
                got=str(self),
                hint="punctuated(\"kind = 'close'\", per=['auction'], final=True)",
            )

    def __str__(self) -> str:
        """As written by the user."""
        whole = ", whole_stream=True" if self.whole_stream else ""
        per = f", per={list(self.per)!r}" if self.per else ""
        return f"punctuated({self.predicate!r}{whole}{per}{', final=True' if self.final else ''})"


@dataclass(frozen=True)
class PerSource:
    """Each value of `column` has a progress of its own, and the stream's is the least of them.

    Within a source a row comes at most `disorder` behind its greatest time. A source that has fallen more than `idle`
    behind the greatest time of the stream no longer holds the others back. Sources that are named beforehand hold the
    stream back from its start.
    """

    column: str
    idle: Length | None = None
    disorder: Length = 0
    sources: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        """The lengths must be readable."""
        if not isinstance(self.column, str) or not self.column:
            raise StreamError(
                "per_source() takes the name of a column.", got=repr(self.column), hint="per_source('router')"
            )
        if self.idle is not None:
            span_ticks(self.idle, None)
        span_ticks(self.disorder, None)

    def __str__(self) -> str:
        """As written by the user."""
        parts = [repr(self.column)]
        if self.idle is not None:
            parts.append(f"idle={self.idle!r}")
        if self.disorder != 0:
            parts.append(f"disorder={self.disorder!r}")
        if self.sources:
            parts.append(f"sources={list(self.sources)!r}")
        return f"per_source({', '.join(parts)})"


Single = Ordered | Bounded | Punctuated | PerSource | Estimated | Timer
"""How one attribute progresses."""
KINDS = "pk.ordered(), pk.bounded(…), pk.punctuated(…), pk.per_source(…), pk.estimated(…) or pk.timer(…)"


@dataclass(frozen=True)
class Several:
    """Several attributes progress; an entry has the attributes that it speaks for, mostly one, and how."""

    entries: tuple[tuple[tuple[str, ...], Single], ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        """What progresses, in the order in which it is declared."""
        return tuple(dict.fromkeys(name for names, _ in self.entries for name in names))

    def named(self, name_of: Callable[[str], str]) -> Several:
        """With the attributes under other names."""
        return Several(tuple((tuple(map(name_of, names)), progress) for names, progress in self.entries))

    def __str__(self) -> str:
        """As written by the user."""
        shown = [f"{names[0]!r}: {how}" if len(names) == 1 else f"{names!r}: {how}" for names, how in self.entries]
        return f"{{{', '.join(shown)}}}"


Progress = Single | Several


def declared(progress: object, time: str) -> Progress:
    """What a user gives as a progress: one for the time, or a mapping from attributes to the progress of each."""
    if isinstance(progress, Single):
        return progress
    if isinstance(progress, Several):
        progress = {names if len(names) > 1 else names[0]: how for names, how in progress.entries}
    if not isinstance(progress, Mapping):
        raise StreamError(
            "Not a progress.",
            got=repr(progress),
            hint=f"{KINDS}, or a mapping from attributes to these",
        )
    found = Several(tuple((_attributes(key), _of_attributes(key, how)) for key, how in progress.items()))
    if time.lower() not in {name.lower() for name in found.attributes}:
        raise StreamError(
            "The stream's time is not among the attributes that progress.",
            got=str(found),
            hint=f"add {time!r}: pk.ordered(), or another progress",
        )
    return found if len(found.attributes) > 1 else found.entries[0][1]


def _attributes(key: object) -> tuple[str, ...]:
    names = key if isinstance(key, tuple) else (key,)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise StreamError(
            "An attribute that progresses is given by its name.",
            got=repr(key)[:200],
            hint="'seq', or ('ts', 'seq') for punctuation that speaks for both together",
        )
    if len({name.lower() for name in names}) < len(names):
        raise StreamError("An attribute is named twice.", got=repr(key), hint="name each once")
    return tuple(names)


def _of_attributes(key: object, how: object) -> Single:
    """The progress of an entry; only punctuation speaks for several attributes together."""
    if not isinstance(how, Single):
        raise StreamError(
            "Not a progress.",
            got=f"{key!r}: {how!r}"[:200],
            hint=KINDS,
        )
    if isinstance(key, tuple) and len(key) > 1 and not isinstance(how, Punctuated):
        raise StreamError(
            "Only punctuation speaks for several attributes together.",
            got=f"{key!r}: {how}",
            hint="give each attribute a progress of its own, or punctuated(…) for all of them",
        )
    if isinstance(how, Timer):
        raise StreamError(
            "A timer cannot be declared where several attributes progress.",
            got=f"{key!r}: {how}",
            hint="give one progress, that of the time, or another to this attribute",
        )
    if isinstance(how, Punctuated) and how.per:
        raise StreamError(
            "Punctuation rows of some groups cannot be declared where several attributes progress.",
            got=f"{key!r}: {how}",
            hint="leave per=… out, or let the time alone progress",
        )
    return how


def ordered() -> Ordered:
    """Rows come in order of time."""
    return Ordered()


def bounded(delay: Length | None = None, *, rows: int | None = None) -> Bounded:
    """Rows come at most `delay` (time) or `rows` (rows) late."""
    return Bounded(delay, rows)


def punctuated(
    predicate: str, *, whole_stream: bool = False, per: tuple[str, ...] | list[str] = (), final: bool = False
) -> Punctuated:
    """Rows for which the SQL `predicate` holds carry a bound in their time column.

    Args:
        predicate: Tells punctuation from data.
        whole_stream: The other columns of such a row, besides those that the predicate reads, are null; with this they
            may hold values, which mean nothing.
        per: In these columns a punctuation row may hold values: then it speaks for the rows with these values alone.
            Null stands for any value, so with nulls in all of them it speaks for the whole stream.
        final: A punctuation row that speaks for some rows says that none of them comes any more, whatever its time.
    """
    if not isinstance(per, list | tuple) or not all(isinstance(name, str) and name for name in per):
        raise StreamError("punctuated(per=…) takes a list of columns.", got=repr(per), hint="per=['auction']")
    return Punctuated(predicate, whole_stream, tuple(per), final)


def per_source(
    column: str,
    *,
    idle: Length | None = None,
    disorder: Length = 0,
    sources: tuple[object, ...] | list[object] = (),
) -> PerSource:
    """Each value of `column` progresses by itself; a source that falls `idle` behind holds the others back no more."""
    if not isinstance(sources, list | tuple | set | frozenset):
        raise StreamError("per_source(sources=…) takes a list.", got=repr(sources), hint="sources=['a', 'b']")
    return PerSource(column, idle, disorder, tuple(sources))


def span_ticks(length: Length, domain: Domain | None) -> int:
    """The ticks of a length; `domain` None only checks that it can be read."""
    return length_ticks(length, domain)


def parse_progress(text: str) -> Progress:
    """A progress as written in Python: `bounded('5 seconds')`, or `{'ts': bounded('5 seconds'), 'seq': ordered()}`."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not isinstance(tree, ast.Dict):
            return _called(tree)
        keys = [ast.literal_eval(key) for key in tree.keys if key is not None]
        entries = zip(keys, tree.values, strict=True)
        return Several(tuple((_attributes(key), _of_attributes(key, _called(how))) for key, how in entries))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    raise StreamError(
        "Not a progress.",
        got=text,
        hint="ordered(), bounded('5 seconds'), bounded(rows=100), punctuated(\"kind = 'punct'\"), "
        "per_source('router', idle='30 seconds'), estimated('0.1%') or timer('1 second')",
    )


def _called(call: ast.expr) -> Single:
    known = {
        "ordered": ordered, "bounded": bounded, "punctuated": punctuated, "per_source": per_source,
        "estimated": estimated, "timer": timer,
    }  # fmt: skip
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in known:
        raise ValueError("no call of a progress")
    if any(k.arg is None for k in call.keywords):
        raise ValueError("**")
    args = [ast.literal_eval(a) for a in call.args]
    named = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
    made: Single = known[call.func.id](*args, **named)  # type: ignore[operator]
    return made
