"""Users' Python functions and aggregates, called from where timestamps are ticks.

A user sees timestamps as UTC datetimes and may give back a datetime, naive ones being UTC. What a function gives must
fit the type it was registered with: a wrong value is an error that names the function, and not a null or a failure
elsewhere. So is whatever the user's code raises, also what asks for the process to exit; only the keyboard's interrupt
goes through, and what a signal handler raised meanwhile. Either costs the row, or for an aggregate the window of the
group, and nothing else. Both engines and the oracle call users' code through this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import EvaluationError, Failure, reason_of
from penstock.model.convert import convert
from penstock.model.interrupts import let_through
from penstock.model.schema import DataType
from penstock.model.time import from_ticks
from penstock.operators.aggregates.functions import AggregateFunction, UserAggregate

RAISED = (Exception, SystemExit, GeneratorExit)
"""What a user's code raises that costs its row: all but the keyboard's interrupt."""


def timestamp_aware(
    function: Callable[..., Any], times: Sequence[bool], returns: DataType, name: str = "function"
) -> Callable[..., Any]:
    """The function for ticks: the arguments marked in `times` are shown to it as datetimes, its result is checked."""
    any_time = any(times)

    def apply(*values: Any) -> Any:
        try:
            if any_time:
                values = tuple([shown(v) if is_time else v for v, is_time in zip(values, times, strict=True)])
            result = function(*values)
        except RAISED as error:
            let_through(error)
            raise raised(name, error) from error
        return checked(result, returns, name)

    return apply


def raised(name: str, error: BaseException) -> EvaluationError:
    """The error for a user's code that raised one."""
    return EvaluationError(
        "A user function raised.",
        where=name,
        got=reason_of(error),
        hint="the row is a dead letter; catch the error in the function if the row is to go on",
    )


def shown(value: Any) -> Any:
    """A tick as a datetime; null stays null."""
    return None if value is None else from_ticks(value)


def checked(value: Any, returns: DataType, name: str) -> Any:
    """The result in its declared type, a datetime as ticks."""
    if value is None:
        return None
    try:
        plain = value.item() if type(value).__module__ == "numpy" else value
        converted = convert(plain, returns)
        if type(converted) is str and not converted.isascii():
            converted.encode()  # a lone surrogate is no text
        elif (
            returns.name == "float" and isinstance(converted, float) and math.isinf(converted) and math.isfinite(plain)
        ):
            converted = None  # too great for single precision
    except Exception as error:  # whatever the value is, it is not one of the type
        let_through(error)
        converted = None
    if converted is None:
        raise EvaluationError(
            "A user function gave a value that does not fit its declared type.",
            where=name,
            got=f"{_brief(value)} where {returns} was declared",
            hint="correct the function, or register it with another returns=…",
        )
    return converted


def _brief(value: Any) -> str:
    """A value as text of a bounded length; not every value can show itself."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}…"


# A user's aggregate that raises costs its group's window. The partial that stands for that is plain data, as all state.
# To the operators a partial of None is one that no value has come to; a user's own None is a partial like any other, so
# among operators and in state something else stands for it.

_FAILED = "\0failed"
_NONE = ("\0none",)


def _kept(partial: Any) -> Any:
    """A user's partial, or the data of one, as operators keep it."""
    return _NONE if partial is None else partial


def _own(partial: Any) -> Any:
    """What the user gave."""
    marked = type(partial) is tuple and len(partial) == 1 and type(partial[0]) is str and partial == _NONE
    return None if marked else partial


def _failed(name: str, error: BaseException) -> tuple[str, str]:
    own = isinstance(error, EvaluationError)
    return _FAILED, reason_of(error if own else raised(name, error))


def is_failed(partial: Any) -> bool:
    """Whether a user's code raised while this partial was made."""
    return type(partial) is tuple and len(partial) == 2 and type(partial[0]) is str and partial[0] == _FAILED


@dataclass(frozen=True)
class _Lift:
    name: str
    lift: Callable[[Any], Any]
    is_time: bool

    def __call__(self, value: Any) -> Any:
        try:
            return _kept(self.lift(shown(value) if self.is_time else value))
        except RAISED as error:
            let_through(error)
            return _failed(self.name, error)


@dataclass(frozen=True)
class _Join:
    """Combines two partials, or takes one out of another; of two failures the lesser text stands for both."""

    name: str
    join: Callable[[Any, Any], Any]

    def __call__(self, left: Any, right: Any) -> Any:
        failures = [p for p in (left, right) if is_failed(p)]
        if failures:
            return min(failures)
        try:
            return _kept(self.join(_own(left), _own(right)))
        except RAISED as error:
            let_through(error)
            return _failed(self.name, error)


@dataclass(frozen=True)
class _Lower:
    name: str
    lower: Callable[[Any], Any]
    returns: DataType

    def __call__(self, partial: Any) -> Any:
        if is_failed(partial):
            raise Failure(partial[1])
        try:
            result = self.lower(_own(partial))
        except RAISED as error:
            let_through(error)
            raise raised(self.name, error) from error
        return checked(result, self.returns, self.name)


@dataclass(frozen=True)
class _UnlessFailed:
    convert: Callable[[Any], Any]

    def __call__(self, partial: Any) -> Any:
        return partial if is_failed(partial) else _kept(self.convert(_own(partial)))


def _unless_failed(convert: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    return None if convert is None else _UnlessFailed(convert)


def aggregate_function(
    name: str, aggregate: UserAggregate, argument: DataType | None, returns: DataType
) -> AggregateFunction:
    """A user's aggregate over ticks as an aggregate function; its partials are its own."""
    is_time = argument is not None and argument.name == "timestamp"
    invert = getattr(aggregate, "invert", None)
    return AggregateFunction(
        name,
        _Lift(name, aggregate.lift, is_time),
        _Join(name, aggregate.combine),
        _Lower(name, aggregate.lower, returns),
        None if invert is None else _Join(name, invert),
        to_state=_unless_failed(getattr(aggregate, "to_state", None)),
        from_state=_unless_failed(getattr(aggregate, "from_state", None)),
        is_failed=is_failed,
    )
