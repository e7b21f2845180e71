"""Users' Python functions and aggregates, called from where timestamps are ticks.

A user sees timestamps as UTC datetimes and may give back a datetime, naive ones being UTC. What a function gives must
fit the type it was registered with: a wrong value is an error that names the function, and not a null or a failure
elsewhere. Both engines and the oracle call users' code through this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.algorithms.aggregates.functions import AggregateFunction, UserAggregate
from penstock.errors import EvaluationError
from penstock.model.convert import convert
from penstock.model.schema import DataType
from penstock.model.time import from_ticks


def timestamp_aware(
    function: Callable[..., Any], times: Sequence[bool], returns: DataType, name: str = "function"
) -> Callable[..., Any]:
    """The function for ticks: the arguments marked in `times` are shown to it as datetimes, its result is checked."""
    if not any(times):
        return lambda *values: checked(function(*values), returns, name)

    def apply(*values: Any) -> Any:
        given = [shown(v) if is_time else v for v, is_time in zip(values, times, strict=True)]
        return checked(function(*given), returns, name)

    return apply


def shown(value: Any) -> Any:
    """A tick as a datetime; null stays null."""
    return None if value is None else from_ticks(value)


def checked(value: Any, returns: DataType, name: str) -> Any:
    """The result in its declared type, a datetime as ticks."""
    if value is None:
        return None
    plain = value.item() if type(value).__module__ == "numpy" else value
    converted = convert(plain, returns)
    if converted is None:
        raise EvaluationError(
            "A user function gave a value that does not fit its declared type.",
            where=name,
            got=f"{value!r} where {returns} was declared",
            hint="correct the function, or register it with another returns=…",
        )
    return converted


@dataclass(frozen=True)
class _Lift:
    lift: Callable[[Any], Any]

    def __call__(self, value: Any) -> Any:
        return self.lift(shown(value))


@dataclass(frozen=True)
class _Lower:
    lower: Callable[[Any], Any]
    returns: DataType
    name: str

    def __call__(self, partial: Any) -> Any:
        return checked(self.lower(partial), self.returns, self.name)


def aggregate_function(
    name: str, aggregate: UserAggregate, argument: DataType | None, returns: DataType
) -> AggregateFunction:
    """A user's aggregate over ticks as an aggregate function; its partials are its own."""
    is_time = argument is not None and argument.name == "timestamp"
    return AggregateFunction(
        name,
        _Lift(aggregate.lift) if is_time else aggregate.lift,
        aggregate.combine,
        _Lower(aggregate.lower, returns, name),
        getattr(aggregate, "invert", None),
        to_state=getattr(aggregate, "to_state", None),
        from_state=getattr(aggregate, "from_state", None),
    )
