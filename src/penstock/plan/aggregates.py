"""The record of an aggregate that a plan calls: of the catalogue, or made of a user's own.

A user's aggregate has a row form only. Nothing is known of how much room its partials take.
"""

from __future__ import annotations

from penstock.errors import PlanError
from penstock.model.schema import DataType
from penstock.operators.aggregates.catalogue import Aggregate, find
from penstock.operators.aggregates.functions import AggregateFunction, UserAggregate
from penstock.plan.catalog import Catalog, closest
from penstock.plan.expressions import USER, AggregateCall
from penstock.plan.user_functions import aggregate_function


def record_of(call: AggregateCall, catalog: Catalog) -> Aggregate:
    """What is known of the function that is called."""
    if call.function.startswith(USER):
        name = call.function.removeprefix(USER)
        if name not in catalog.aggregates:
            raise PlanError("There is no such aggregate.", got=name, hint=closest(name, catalog.aggregates))
        made = _of_user(name, *catalog.aggregates[name])
        return made.of_distinct() if call.distinct else made
    found = known(call)
    if found is None:
        raise PlanError("There is no such aggregate.", got=str(call))
    return found


def known(call: AggregateCall) -> Aggregate | None:
    """The record of the catalogue for a call; None of a user's aggregate, and if there is none."""
    found = find(call.function, distinct=call.distinct, arguments=len(call.columns))
    return found if found is None or call.share is None else found.of_share(call.share)


def _of_user(name: str, aggregate: UserAggregate, returns: DataType) -> Aggregate:
    def row_form(argument: DataType | None, result: DataType) -> AggregateFunction:
        return aggregate_function(name, aggregate, argument, result)

    return Aggregate(USER + name, lambda argument: returns, row_form, bounded=False)
