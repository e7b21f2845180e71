"""The options of a merge, checked at once: a wrong one is an error that names the right ones."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

from penstock.errors import MergeError
from penstock.model.properties import StreamProperties
from penstock.operators.merge.divergence import REACTIONS
from penstock.operators.merge.policies import Policy, policy_of
from penstock.operators.merge.revisable import LEADING, MAJORITY


def check_options(
    names: Collection[str], policy: str | Policy, lag: Any, driver: Any, on_divergence: Any, where: str = ""
) -> None:
    """Refuse what a merge of inputs of these names cannot be asked for."""
    try:
        policy_of(policy)
    except MergeError as error:
        raise MergeError(error.what, where=where, got=error.got, hint=error.hint) from None
    if isinstance(lag, bool) or not isinstance(lag, int) or lag < 0:
        raise MergeError(
            "A lag is a number of ticks that the output's bound stays behind.",
            where=where,
            got=repr(lag),
            hint="an integer, 0 or more",
        )
    if driver not in (LEADING, MAJORITY, *names):
        raise MergeError(
            "There is no such driver.", where=where, got=repr(driver), hint=one_of(driver, [LEADING, MAJORITY, *names])
        )
    if on_divergence not in REACTIONS:
        raise MergeError(
            "There is no such reaction to divergence.",
            where=where,
            got=repr(on_divergence),
            hint=one_of(on_divergence, REACTIONS),
        )


def check_properties(given: object, where: str = "") -> None:
    """What is known of the inputs is said in one way."""
    if given is not None and not isinstance(given, StreamProperties):
        raise MergeError(
            "Not the properties of a stream.",
            where=where,
            got=repr(given)[:200],
            hint="pk.StreamProperties(ordered=True, key=frozenset({'k'}))",
        )


def one_of(given: Any, known: Collection[str]) -> str:
    """What may have been meant, or all there is."""
    near = get_close_matches(str(given), list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else f"one of {', '.join(known)}"


def needs_index(policy: str | Policy, default: str, lag: int, driver: str) -> str | None:
    """What was asked for that only a merge with an index can do, in words."""
    asked = []
    if policy_of(policy) != policy_of(default):
        asked.append(f"the policy {policy_of(policy).name}")
    if lag:
        asked.append("a lag")
    if driver != LEADING:
        asked.append(f"bounds by {driver}")
    return " and ".join(asked) or None
