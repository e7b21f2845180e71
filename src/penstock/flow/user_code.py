"""Functions and aggregates of the user's, checked and put into a flow's catalog.

A name means one thing: one that SQL reads as something else, in any case, could never be called, and one that is there
already would change queries that use it, so both are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from penstock.errors import StreamError
from penstock.model.schema import DataType, parse_type
from penstock.operators.aggregates.functions import UserAggregate
from penstock.plan.catalog import Catalog, UserFunction
from penstock.sql.tokens import other_meaning

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""What streams, functions and aggregates may be called."""
_NEEDED = ("lift", "combine", "lower")


def register_function(
    catalog: Catalog, name: str, function: Callable[..., object], returns: str, version: str | None
) -> None:
    """Add a function of single values."""
    type_ = _checked(catalog, "function", name, returns, version)
    if not callable(function):
        raise StreamError("A function must be callable.", where=f"function {name}", got=repr(function)[:200])
    catalog.functions[name.lower()] = UserFunction(name.lower(), function, type_, version)


def register_aggregate(catalog: Catalog, name: str, aggregate: Any, returns: str, version: str | None) -> None:
    """Add an aggregate."""
    type_ = _checked(catalog, "aggregate", name, returns, version)
    where = f"aggregate {name}"
    try:
        made = aggregate() if isinstance(aggregate, type) else aggregate
    except Exception as error:  # it is the user's code
        raise StreamError(
            "The aggregate cannot be made.", where=where, got=repr(error), hint="register an object of the class"
        ) from error
    missing = [m for m in _NEEDED if not callable(getattr(made, m, None))]
    if missing or not isinstance(made, UserAggregate):
        raise StreamError("An aggregate needs lift, combine and lower.", where=where, got=f"no {', '.join(missing)}")
    if hasattr(made, "to_state") != hasattr(made, "from_state"):
        raise StreamError(
            "An aggregate needs to_state and from_state, or neither.",
            where=where,
            got=f"no {'from_state' if hasattr(made, 'to_state') else 'to_state'}",
            hint="to_state(partial) gives plain data, from_state(data) gives the partial back",
        )
    catalog.aggregates[name.lower()] = (made, type_)
    if version is not None:
        catalog.versions[name.lower()] = version


def _checked(catalog: Catalog, what: str, name: str, returns: str, version: str | None) -> DataType:
    """The type that is returned, after all checks of what functions and aggregates have in common."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        article = "an" if what == "aggregate" else "a"
        raise StreamError(
            f"The name of {article} {what} must be an identifier.",
            got=repr(name)[:200],
            hint="letters, digits and underscores",
        )
    where = f"{what} {name}"
    meaning = other_meaning(name)
    if meaning is not None:
        raise StreamError("The name has a meaning in SQL already.", where=where, got=meaning, hint="choose another one")
    for known, names in (("a function", catalog.functions), ("an aggregate", catalog.aggregates)):
        if name.lower() in names:
            raise StreamError(
                f"There is {known} of that name already.", where=where, got=name, hint="choose another one"
            )
    for option, value in (("returns", returns), ("version", version)):
        if not isinstance(value, str) and (value is not None or option == "returns"):
            raise StreamError(f"{option} must be a text.", where=where, got=repr(value)[:200])
    try:
        return parse_type(returns)
    except StreamError as error:
        raise StreamError(error.what, where=where, got=error.got, hint=error.hint) from None
