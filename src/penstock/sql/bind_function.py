"""From sqlglot's functions to ours: text, numbers, bits, and those that are called by name.

Each function takes exactly the arguments that are read here; any other that is given is refused by the reading.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.model.schema import BIGINT, DOUBLE, INT, STRING, DataType, decimal
from penstock.plan.expressions import USER, Call, Expression, Literal
from penstock.plan.typing import converted, decimal_of, rounded_type
from penstock.sql.advice import advice
from penstock.sql.aggregate_names import REFUSED
from penstock.sql.bind_cast import cast
from penstock.sql.bind_named import located, matched, named_function, whole
from penstock.sql.bind_nested import bracket, concatenated, dot
from penstock.sql.bind_times import PARTS, bare_interval, extraction, time_part, truncation
from penstock.sql.window_names import what_to_write

if TYPE_CHECKING:
    from penstock.sql.bind_expression import ExpressionBinder

_TEXT: dict[type[exp.Expr], tuple[str, DataType]] = {
    exp.Lower: ("lower", STRING), exp.Upper: ("upper", STRING), exp.Length: ("length", INT),
}  # fmt: skip
_SIDES = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_BITS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "bitwise_and", exp.BitwiseOr: "bitwise_or", exp.BitwiseXor: "bitwise_xor",
}  # fmt: skip


def text_function(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A function of one text."""
    name, type_ = _TEXT[type(node)]
    return Call(name, (binder.string(binder.reading.need(node, "this")),), type_)


def trimmed(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)."""
    side = str(binder.reading.value(node, "position") or "BOTH").upper()
    if side not in _SIDES:
        raise binder.error("TRIM does not know this side.", node, got=side[:60], hint="BOTH, LEADING or TRAILING")
    text = binder.string(binder.reading.need(node, "this"))
    characters = binder.reading.part(node, "expression")
    args = (text,) if characters is None else (text, binder.string(characters))
    return Call(_SIDES[side], args, STRING)


def position(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """POSITION(part IN text)."""
    reading = binder.reading
    return located(binder, reading.need(node, "substr"), reading.need(node, "this"), reading.part(node, "position"))


def matching_operator(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """RLIKE and REGEXP between two operands."""
    return matched(binder, binder.reading.need(node, "this"), binder.reading.need(node, "expression"))


def concatenation(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """`concat` of texts or of arrays, texts side by side, and the operator of two bars: null if a part is."""
    reading = binder.reading
    reading.value(node, "safe")  # whether other dialects convert the parts; here they must be text
    reading.value(node, "coalesce")
    if isinstance(node, exp.DPipe):
        operands: list[exp.Expr] = []
        pending: list[exp.Expr] = [node]
        while pending:
            at = pending.pop()
            if isinstance(at, exp.DPipe):
                reading.value(at, "safe")
                pending += [reading.need(at, "expression"), reading.need(at, "this")]
            else:
                operands.append(at)
    else:
        operands = reading.parts(node, "expressions")
    if not operands:
        raise binder.error("Something is missing here.", node)
    values = [binder.bind(o) for o in operands]
    if any(v.type.name == "array" for v in values):
        return concatenated(binder, values, node)
    return Call("concat", tuple(binder.text(v, o) for v, o in zip(values, operands, strict=True)), STRING)


def substring(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A part of a text, from a place and of a length."""
    reading = binder.reading
    args = [binder.string(reading.need(node, "this")), binder.integer(reading.need(node, "start"))]
    length = reading.part(node, "length")
    if length is not None:
        args.append(binder.integer(length))
    return Call("substring", tuple(args), STRING)


def first_or_extreme(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """COALESCE, GREATEST and LEAST: any number of values in one type."""
    reading = binder.reading
    for arg in ("is_nvl", "is_null", "ignore_nulls"):  # how it was spelt; Spark ignores nulls in all three
        reading.value(node, arg)
    args = [binder.bind(a) for a in [reading.need(node, "this"), *reading.parts(node, "expressions")]]
    name = type(node).__name__.lower()
    type_ = binder.common([a.type for a in args], node)
    return Call(name, tuple(converted(a, type_) for a in args), type_)


def bits(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """Bit by bit, in the wider of two types."""
    left, right = (binder.integer(binder.reading.need(node, arg)) for arg in ("this", "expression"))
    type_ = binder.common([left.type, right.type], node)
    return Call(_BITS[type(node)], (converted(left, type_), converted(right, type_)), type_)


def inverted_bits(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """All bits the other way round."""
    value = binder.integer(binder.reading.need(node, "this"))
    return Call("bitwise_not", (value,), value.type)


def number_function(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A function of one number; floor and ceil may have a number of digits."""
    value = binder.bind(binder.reading.need(node, "this"))
    if not value.type.is_numeric:
        raise binder.error("A number is expected.", node, got=str(value.type))
    if isinstance(node, exp.Abs):
        return Call("abs", (value,), value.type)
    if isinstance(node, exp.Sqrt):
        return Call("sqrt", (converted(value, DOUBLE),), DOUBLE)
    name = "floor" if isinstance(node, exp.Floor) else "ceil"
    decimals = binder.reading.part(node, "decimals")
    if decimals is not None:
        digits = whole(binder, decimals, "number of digits")
        exact = converted(value, decimal_of(value.type))
        return Call(name, (exact, Literal(digits, INT)), rounded_type(exact.type, digits))
    if not value.type.is_decimal or not value.type.scale:
        return Call(name, (value,), value.type if value.type.is_decimal else BIGINT)
    return Call(name, (value,), decimal(value.type.precision - value.type.scale + 1, 0))


def called_by_name(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A Python function that was registered; otherwise one of the language."""
    name = binder.reading.name(node)
    function = binder.catalog.functions.get(name.lower())
    args = binder.reading.parts(node, "expressions")
    if function is not None:
        return Call(USER + function.name, tuple(binder.bind(a) for a in args), function.returns)
    bound = named_function(binder, node, name.lower(), args)
    if bound is None:
        if name.lower() in REFUSED:
            raise binder.error(f"{name.lower()} is not supported.", node, got=name, hint=REFUSED[name.lower()])
        hint = what_to_write(name) or advice(name)
        raise binder.error("Unknown function.", node, got=name, hint=hint)
    return bound


FUNCTIONS: dict[type[exp.Expr], Callable[[ExpressionBinder, exp.Expr], Expression | None]] = {
    **dict.fromkeys(_TEXT, text_function),
    **dict.fromkeys(PARTS, time_part),
    exp.Trim: trimmed,
    exp.Extract: extraction,
    exp.StrPosition: position,
    exp.RegexpLike: matching_operator,
    **dict.fromkeys(_BITS, bits),
    exp.BitwiseNot: inverted_bits,
    exp.Concat: concatenation,
    exp.DPipe: concatenation,
    exp.Substring: substring,
    exp.TimestampTrunc: truncation,
    exp.Interval: bare_interval,
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), first_or_extreme),
    **dict.fromkeys((exp.Abs, exp.Floor, exp.Ceil, exp.Sqrt), number_function),
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.Anonymous: called_by_name,
    exp.Dot: dot,
    exp.Bracket: bracket,
}
"""What binds a function, by the kind of its node."""
