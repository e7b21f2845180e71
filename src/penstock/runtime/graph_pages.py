"""The state of a graph as plain data: the pages of its operators, and elements that were given and not taken yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.errors import CheckpointError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.lives import Lives
from penstock.model.schema import Schema
from penstock.operators.operator import Operator
from penstock.operators.state import check_kind, open_page, plain_page
from penstock.runtime.arcs import Given, Result, result_of
from penstock.runtime.taking_up import STATELESS


def plain_pages(operator: Operator, where: str) -> dict[str, Any]:
    """The pages of an operator, with their kind and version."""
    pages = operator.pages
    plain = {key: plain_page(operator, key, pages.get(key), where) for key in pages.keys()}  # noqa: SIM118
    return {"kind": operator.kind, "version": operator.version, "pages": plain}


def held_pages(operators: Any, identity: str, operator: Operator, where: str) -> dict[str, Any]:
    """The pages that a snapshot holds of an operator; one without state may not have been in the plan then."""
    if operator.kind == STATELESS and isinstance(operators, dict) and identity not in operators:
        return {}
    try:
        saved = operators[identity]
        kind, version, pages = saved["kind"], saved["version"], dict(saved["pages"])
    except (TypeError, ValueError, LookupError) as error:
        raise CheckpointError(
            "The snapshot lacks the state of an operator.", where=where, got=repr(error), hint="use another copy"
        ) from None
    check_kind(operator, kind, version, where)
    return {key: open_page(operator, key, kind, version, data, where=where) for key, data in pages.items()}


def plain_elements(elements: Iterable[Given]) -> list[tuple[Any, ...]]:
    """Of each its kind and what is in it; of a batch with lives its ends and old ends as well."""
    return [_plain(result_of(element)) for element in elements]


def _plain(element: Result) -> tuple[Any, ...]:
    if isinstance(element, Punctuation):
        return "punctuation", (element.bounds, element.constants)
    lives = () if element.lives is None else (element.lives.ends, element.lives.olds)
    if element.columnar:
        return ("table", element.table, *lives)
    return ("rows", list(element.rows), *lives)


def held_elements(saved: Iterable[Any], schema: Schema) -> list[Result]:
    """Elements that had been given and not taken."""
    return [_element(each, schema) for each in saved]


def _element(saved: Any, schema: Schema) -> Result:
    try:
        kind, content, *lives = saved
        if kind == "punctuation":
            return Punctuation(*content)
        return Batch(schema, **{kind: content}, lives=Lives(*lives) if lives else None)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            "The snapshot holds an output that is none.", got=repr(error), hint="use another copy"
        ) from None
