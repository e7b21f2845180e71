"""Predicates that stand by themselves: the one that tells punctuation rows from data."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import QueryError, StreamError
from penstock.model.progress import Punctuated
from penstock.model.schema import Schema
from penstock.query.bind_expression import ExpressionBinder
from penstock.query.catalog import Catalog, closest
from penstock.query.expressions import Column, Expression, walk


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
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        raise StreamError(
            "The predicate of punctuated() does not parse.",
            where=f"stream {stream}",
            got=text,
            hint=str(error).splitlines()[0],
        ) from None

    def resolve(node: exp.Expr) -> Expression | None:
        if not isinstance(node, exp.Column):
            return None
        if node.name not in schema:
            raise StreamError(
                "The predicate of punctuated() names an unknown column.",
                where=f"stream {stream}", got=node.name, hint=closest(node.name, schema.names),
            )  # fmt: skip
        found = schema[node.name]
        return Column(found.name, found.type)

    try:
        return ExpressionBinder(catalog, text, resolve).predicate(tree)
    except QueryError as error:
        raise StreamError(
            "The predicate of punctuated() is wrong: " + error.what,
            where=f"stream {stream}",
            got=error.got,
            hint=error.hint,
        ) from None
