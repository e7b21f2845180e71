"""The shape of calls that have words between their arguments (`shape_expression.py`): TRIM, EXTRACT, POSITION."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from penstock.sql.shape_expression import ShapeOfExpressions

ARITHMETIC = {
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DIV, TokenType.DPIPE,
    TokenType.AMP, TokenType.PIPE, TokenType.CARET,
}  # fmt: skip
"""What stands between operands and is no comparison."""


def _trim(shape: ShapeOfExpressions) -> None:
    has_side = shape.take_word("BOTH", "LEADING", "TRAILING")
    if shape.kind() != TokenType.FROM:
        shape.expression()
    if has_side or shape.kind() == TokenType.FROM:
        shape.expect(TokenType.FROM, "FROM")
        shape.expression()


def _extract(shape: ShapeOfExpressions) -> None:
    shape.word_or_name("A unit is expected here.")
    shape.expect(TokenType.FROM, "FROM")
    shape.expression()


def _position(shape: ShapeOfExpressions) -> None:
    shape.operand()
    while shape.take(*ARITHMETIC):
        shape.operand()
    if not shape.take(TokenType.IN):
        shape.expect(TokenType.COMMA, "IN")
    shape.each(shape.expression)


WORDED: dict[str, Callable[[ShapeOfExpressions], None]] = {"TRIM": _trim, "EXTRACT": _extract, "POSITION": _position}
"""What stands in the parentheses of each, by its name in capitals."""
