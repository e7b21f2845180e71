"""The shape of what is said of groups: the sets of a GROUP BY, and what may stand after an aggregate (`shape.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from penstock.sql.shape_expression import ShapeOfExpressions

_SETS = (TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS)


def group_by(shape: ShapeOfExpressions) -> None:
    """ALL, or keys and sets of keys; after keys alone, which sets of them."""
    if shape.take(TokenType.ALL):
        return
    shape.each(lambda: _key(shape))
    if shape.kind() == TokenType.WITH and shape.kind(1) in (TokenType.ROLLUP, TokenType.CUBE):
        shape.at += 2
    elif shape.kind() == TokenType.GROUPING_SETS:
        _key(shape)


def _key(shape: ShapeOfExpressions) -> None:
    if shape.kind() in _SETS and shape.kind(1) == TokenType.L_PAREN:
        shape.at += 1
        shape.inside(lambda: shape.each(lambda: _keys(shape)))
    else:
        shape.expression()


def _keys(shape: ShapeOfExpressions) -> None:
    """A key or a set, or some keys in parentheses."""
    if shape.kind() != TokenType.L_PAREN:
        _key(shape)
    elif shape.kind(1) == TokenType.R_PAREN:
        shape.at += 2
    else:
        start = shape.at
        shape.at += 1
        shape.each(shape.expression)
        shape.expect(TokenType.R_PAREN, "A closing parenthesis")
        if shape.kind() not in (TokenType.COMMA, TokenType.R_PAREN):  # an expression that begins with one
            shape.at = start
            shape.expression()


def nulls(shape: ShapeOfExpressions) -> None:
    """Whether nulls count, if that is said."""
    if shape.word() in ("IGNORE", "RESPECT") and shape.word(1) == "NULLS":
        shape.at += 2


def after_aggregate(shape: ShapeOfExpressions) -> None:
    """WITHIN GROUP, FILTER and IGNORE NULLS, in Spark's order; OVER."""
    if shape.word() == "WITHIN" and shape.word(1) == "GROUP":
        shape.at += 2
        shape.inside(lambda: _order(shape))
    if shape.kind() == TokenType.FILTER and shape.kind(1) == TokenType.L_PAREN:
        shape.at += 1
        shape.inside(lambda: _where(shape))
    nulls(shape)
    if shape.kind() == TokenType.FILTER and shape.kind(1) == TokenType.L_PAREN:
        shape.refuse("FILTER stands before IGNORE NULLS.", "write first(x) FILTER (WHERE …) IGNORE NULLS")
    if shape.word() == "OVER" and shape.kind(1) == TokenType.L_PAREN:
        shape.at += 1
        shape.inside(lambda: _over(shape))


def _over(shape: ShapeOfExpressions) -> None:
    """PARTITION BY and ORDER BY."""
    if shape.take(TokenType.PARTITION_BY):
        shape.each(shape.expression)
    shape.expect(TokenType.ORDER_BY, "ORDER BY")
    shape.each(lambda: _ordered(shape))


def _ordered(shape: ShapeOfExpressions) -> None:
    shape.expression()
    shape.take(TokenType.ASC, TokenType.DESC)
    if shape.take_word("NULLS") and not shape.take_word("FIRST", "LAST"):
        shape.refuse("FIRST or LAST is expected here.")


def _order(shape: ShapeOfExpressions) -> None:
    shape.expect(TokenType.ORDER_BY, "ORDER BY")
    shape.expression()
    shape.take(TokenType.ASC, TokenType.DESC)


def _where(shape: ShapeOfExpressions) -> None:
    shape.expect(TokenType.WHERE, "WHERE")
    shape.expression()
