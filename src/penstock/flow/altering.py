"""Streams whose events have other lives, declared under a name of their own: the node of a flow's catalog."""

from __future__ import annotations

import datetime as dt
from typing import Self

from penstock.errors import StreamError
from penstock.flow.user_code import NAME
from penstock.model.time import Domain, Length, length_ticks, longest, show_span
from penstock.plan.catalog import Catalog, closest
from penstock.plan.nodes import AlterLifetime, Node
from penstock.sql.predicates import source_of

POINT = 1
"""How long a point event lives, in ticks."""


class FlowAltered:
    """Declares streams with other lives."""

    catalog: Catalog

    def alter(
        self,
        name: str,
        stream: str,
        *,
        duration: Length | None = None,
        shift: Length = 0,
        extend: Length = 0,
        at_most: Length | None = None,
        point: bool = False,
    ) -> Self:
        """Declare a stream of the same events with other lives, which queries read under a new name.

        Args:
            name: what queries call the altered stream.
            stream: a stream, a merged one or an altered one, declared before.
            duration: how long every event lives from its start on, whenever it would have ended.
            shift: how much later events start and end; earlier, if it is negative (`"-5 minutes"`).
            extend: how much longer events live.
            at_most: events that live longer end after this; of those that are extended, afterwards.
            point: every event lives a single tick.
        """
        check_lengths_given(name, duration, shift, extend, at_most, point)
        node = alter_node(self.catalog, name, stream, duration, shift, extend, at_most, point)
        self.catalog.views[name.lower()] = node
        return self


def alter_node(
    catalog: Catalog,
    name: str,
    stream: str,
    duration: Length | None,
    shift: Length,
    extend: Length,
    at_most: Length | None,
    point: bool,
) -> AlterLifetime:
    """The node that alters a declared stream, after all checks."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise StreamError(
            "A stream's name must be an identifier.", got=repr(name)[:200], hint="letters, digits and underscores"
        )
    if source_of(catalog, name) is not None:
        raise StreamError("There is a stream of that name already.", got=name, hint="choose another name")
    where = f"stream {name}"
    below = source_of(catalog, stream) if isinstance(stream, str) else None
    if below is None:
        hint = closest(str(stream), catalog.names)
        raise StreamError("There is no such stream.", where=where, got=str(stream)[:200], hint=hint)
    domain = below.schema.domain
    try:
        made = AlterLifetime(
            below,
            _signed(shift, domain),
            POINT if point else None if duration is None else _length(duration, domain),
            length_ticks(extend, domain),
            None if at_most is None else _length(at_most, domain),
        )
    except StreamError as error:
        raise StreamError(error.what, where=where, got=error.got, hint=error.hint) from None
    _check_reach(made, where)
    return made


def check_lengths_given(
    name: str, duration: object, shift: object, extend: object, at_most: object, point: object
) -> None:
    """A length is given in one way, and something is altered."""
    where = f"stream {name}"
    lengths = {"duration": duration is not None, "point": bool(point)}
    others = {"extend": extend != 0, "at_most": at_most is not None}
    given = [option for option, is_given in lengths.items() if is_given]
    also = [option for option, is_given in others.items() if is_given]
    if len(given) > 1 or (given and also):
        raise StreamError(
            "The length of events is given in two ways.", where=where, got=" and ".join([*given, *also]),
            hint="a duration (or point=True), or extend and at_most",
        )  # fmt: skip
    if not (given or also or shift != 0):
        raise StreamError(
            "Nothing is altered.", where=where, hint="give duration, extend, at_most, shift, or point=True"
        )


def _length(length: Length, domain: Domain) -> int:
    ticks = length_ticks(length, domain)
    if ticks < 1:
        raise StreamError("An event lives at least a tick.", got=repr(length), hint="point=True makes it one tick")
    return ticks


def _signed(length: Length, domain: Domain) -> int:
    """The ticks of a length that may be negative: text with a minus, a number or a timedelta below zero."""
    if isinstance(length, str) and length.lstrip().startswith("-"):
        return -length_ticks(length.lstrip().removeprefix("-"), domain)
    below_zero = (isinstance(length, int) and length < 0) or (
        isinstance(length, dt.timedelta) and length < dt.timedelta()
    )
    return -length_ticks(-length, domain) if below_zero else length_ticks(length, domain)  # type: ignore[operator]


def _check_reach(node: AlterLifetime, where: str) -> None:
    """All that is altered one after the other is no further than the longest length, so that times stay times."""
    total, at = 0, node.schema.domain
    below: Node = node
    while isinstance(below, AlterLifetime):
        total += abs(below.shift) + below.extend
        below = below.input
    if total > longest(at):
        raise StreamError(
            "Events are moved too far.",
            where=where,
            got=show_span(total, at),
            hint=f"at most {show_span(longest(at), at)}",
        )
