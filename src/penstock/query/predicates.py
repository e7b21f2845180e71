"""Predicates that stand by themselves: the one that tells punctuation rows from data."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import QueryError, StreamError
from penstock.model.progress import Punctuated
from penstock.model.schema import Schema
from penstock.query.bind_expression import ExpressionBinder
from penstock.query.catalog import Catalog, closest
from penstock.query.dialect import room_to_recurse
from penstock.query.expressions import Column, Expression, walk
from penstock.query.reading import Reading
from penstock.query.tokens import parse_expression


def silent_columns(progress: Punctuated, predicate: Expression, schema: Schema) -> tuple[int, ...]:
    """The columns that must be null in punctuation: all but the time and those that tell it from data."""
    if progress.whole_stream:
        return ()
    speaking = {schema.time, *(e.name for e in walk(predicate) if isinstance(e, Column))}
    return tuple(i for i, field in enumerate(schema.fields) if field.name not in speaking)


def punctuation_predicate(progress: Punctuated, schema: Schema, catalog: Catalog, stream: str) -> Expression:
    """The bound predicate of a punctuated stream."""
    text = progress.predicate
    try:
        with room_to_recurse():
            tree = parse_expression(text)
    except QueryError as error:
        raise StreamError(
            "The predicate of punctuated() does not parse.",
            where=f"stream {stream}",
            got=text[:80],
            hint=error.got or error.what,
        ) from None
    reading = Reading(text)

    def resolve(node: exp.Expr) -> Expression | None:
        if not isinstance(node, exp.Column):
            return None
        reading.name(node)
        if node.name not in schema:
            raise StreamError(
                "The predicate of punctuated() names an unknown column.",
                where=f"stream {stream}", got=node.name, hint=closest(node.name, schema.names),
            )  # fmt: skip
        found = schema[node.name]
        return Column(found.name, found.type)

    try:
        with room_to_recurse():
            bound = ExpressionBinder(catalog, reading, resolve).predicate(tree)
            reading.finish(tree)
        return bound
    except QueryError as error:
        raise StreamError(
            "The predicate of punctuated() is wrong: " + error.what,
            where=f"stream {stream}",
            got=error.got,
            hint=error.hint,
        ) from None
