"""Arrays, maps and structs: access to their parts, and the functions that take them or make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.model.schema import BIGINT, BOOLEAN, INT, STRING, VOID, DataType
from penstock.model.types import array_of, map_of, struct_of
from penstock.plan import regular_expressions
from penstock.plan.catalog import closest
from penstock.plan.expressions import Call, Column, Expression, Literal
from penstock.plan.typing import common_type, converted
from penstock.sql.reading import shown

if TYPE_CHECKING:
    from penstock.sql.bind_expression import ExpressionBinder

Arguments = list[exp.Expr]
Rule = Callable[["ExpressionBinder", exp.Expr, Arguments], Expression]
MAPS_AS_KEYS = "maps cannot be compared: take map_keys(m), map_values(m) or m['key']"


# Access


def dot(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A field of a struct, or of every struct in an array."""
    value = binder.bind(binder.reading.need(node, "this"))
    field = binder.reading.need(node, "expression")
    if not isinstance(field, exp.Identifier):
        raise binder.error("A name is expected after the dot.", node)
    name = binder.reading.name(node, "expression")
    return field_of(binder, value, name, node)


def field_of(binder: ExpressionBinder, value: Expression, name: str, node: exp.Expr) -> Expression:
    """The field of a name."""
    within = value.type.element if value.type.name == "array" else value.type
    at = within.field(name)
    if at is None:
        if within.name != "struct":
            hint = "write m['key']" if within.name == "map" else "only structs have fields"
            raise binder.error("This has no fields.", node, got=f"{name} of {value.type}", hint=hint)
        raise binder.error(
            "The struct has no such field.", node, got=name, hint=closest(name, [own for own, _ in within.parts])
        )
    kind = within.parts[at][1]
    if value.type.name == "array":
        return Call("fields", (value, Literal(at, INT)), array_of(kind))
    return Call("field", (value, Literal(at, INT)), kind)


def bracket(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """`a[i]`, `m[key]`."""
    inside = binder.reading.parts(node, "expressions")
    if len(inside) != 1:
        raise binder.error("One index or key is expected.", node, hint="a[0], m['key']")
    value = binder.bind(binder.reading.need(node, "this"))
    if value.type.name == "map":
        return _value_of_key(binder, value, inside[0])
    if value.type.name == "struct":
        wanted = binder.bind(inside[0])
        if isinstance(wanted, Literal) and isinstance(wanted.value, str):
            return field_of(binder, value, wanted.value, node)
        raise binder.error("A struct has fields by name.", node, hint="write s.field")
    return _at(binder, "item", value, inside[0], node)


def _at(binder: ExpressionBinder, name: str, array: Expression, index: exp.Expr, node: exp.Expr) -> Expression:
    if array.type.name != "array":
        raise binder.error("An array or a map is expected.", node, got=f"{shown(node)}: {array.type}")
    return Call(name, (array, binder.integer(index)), array.type.element)


def _value_of_key(binder: ExpressionBinder, value: Expression, key: exp.Expr) -> Expression:
    return Call("map_value", (value, _like_key(binder, value, key)), value.type.element)


def _like_key(binder: ExpressionBinder, value: Expression, key: exp.Expr) -> Expression:
    return _fitting(binder, binder.bind(key), value.type.parts[0][1], key, "key")


def _fitting(binder: ExpressionBinder, bound: Expression, type_: DataType, node: exp.Expr, what: str) -> Expression:
    """A value that is compared with the keys or elements of a type; it may be of a narrower type than they are."""
    if bound.type != VOID and common_type(bound.type, type_) != type_:
        raise binder.error(
            f"The {what} is of another type.", node, got=f"{bound.type} for {type_}", hint=f"CAST(… AS {type_})"
        )
    return converted(bound, type_)


# Arguments


def _array(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    bound = binder.bind(node)
    if bound.type.name != "array":
        raise binder.error("An array is expected.", node, got=f"{shown(node)} of type {bound.type}")
    return bound


def _map(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    bound = binder.bind(node)
    if bound.type.name != "map":
        raise binder.error("A map is expected.", node, got=f"{shown(node)} of type {bound.type}")
    return bound


def comparable(binder: ExpressionBinder, type_: DataType, node: exp.Expr) -> None:
    """Refuse to compare what holds maps."""
    if type_.holds_map:
        raise binder.error("Maps cannot be compared.", node, got=str(type_), hint=MAPS_AS_KEYS)


def _comparable_array(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    array = _array(binder, node)
    comparable(binder, array.type, node)
    return array


def _two_arrays(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> tuple[Expression, Expression]:
    left, right = (_comparable_array(binder, arg) for arg in args)
    type_ = binder.common([left.type, right.type], node)
    return converted(left, type_), converted(right, type_)


# Rules


def _item_of(name: str) -> Rule:
    def rule(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
        value = binder.bind(args[0])
        if value.type.name == "map" and name != "get":
            return _value_of_key(binder, value, args[1])
        return _at(binder, name, value, args[1], node)

    return rule


def _size(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    value = binder.bind(args[0])
    if value.type.name not in ("array", "map"):
        raise binder.error("An array or a map is expected.", args[0], got=f"{shown(args[0])} of type {value.type}")
    return Call("size", (value,), INT)


def _with_element(name: str, returns: DataType | None = None) -> Rule:
    """A function of an array and a value like its elements; without a type of its own it gives such an array."""

    def rule(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
        array = _comparable_array(binder, args[0])
        bound = binder.bind(args[1])
        common = common_type(array.type.element, bound.type)
        if common is None:
            got = f"{bound.type} for {array.type}"
            raise binder.error("The value is of another type than the elements.", args[1], got=got, hint="CAST it")
        whole = array_of(common)
        return Call(name, (converted(array, whole), converted(bound, common)), returns or whole)

    return rule


def _of_arrays(name: str, returns: DataType | None = None) -> Rule:
    """A function of two arrays of one type; without a type of its own it gives another such array."""

    def rule(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
        left, right = _two_arrays(binder, node, args)
        return Call(name, (left, right), returns or left.type)

    return rule


def _of_array(name: str) -> Rule:
    """A function that gives an array of the same type, and compares elements."""

    def rule(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
        array = _comparable_array(binder, args[0])
        return Call(name, (array,), array.type)

    return rule


def _extreme(name: str) -> Rule:
    def rule(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
        array = _comparable_array(binder, args[0])
        return Call(name, (array,), array.type.element)

    return rule


def _compacted(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    array = _array(binder, args[0])
    return Call("array_compact", (array,), array.type)


def _sorted(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    array = _comparable_array(binder, args[0])
    up = binder.predicate(args[1]) if len(args) > 1 else Literal(True, BOOLEAN)
    if not isinstance(up, Literal) or up.value is None:
        raise binder.error("The direction must be a constant.", args[1], got=shown(args[1]), hint="true or false")
    return Call("sort_array", (array, up), array.type)


def _array_sort(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    array = _comparable_array(binder, args[0])
    return Call("array_sort", (array,), array.type)


def _slice(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    array = _array(binder, args[0])
    return Call("slice", (array, binder.integer(args[1]), binder.integer(args[2])), array.type)


def _joined(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    array = _array(binder, args[0])
    if array.type.element not in (STRING, VOID):
        raise binder.error(
            "array_join takes an array of text.", args[0], got=str(array.type), hint="split and collect text"
        )
    texts = [converted(binder.string(arg), STRING) for arg in args[1:]]
    return Call("array_join", (converted(array, array_of(STRING)), *texts), STRING)


def _flattened(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    array = _array(binder, args[0])
    if array.type.element.name != "array":
        raise binder.error("An array of arrays is expected.", args[0], got=f"{shown(args[0])} of type {array.type}")
    return Call("flatten", (array,), array.type.element)


def _repeated(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    value = binder.bind(args[0])
    return Call("array_repeat", (value, binder.integer(args[1])), array_of(value.type))


def _split(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    from penstock.sql.bind_named import pattern  # the two call each other

    wanted = pattern(binder, args[1])
    if wanted is not None and regular_expressions.parse(wanted).may_be_empty:
        raise binder.error(
            "A pattern that can match nothing does not split.",
            args[1],
            got=shown(args[1]),
            hint="write one that cannot",
        )
    most = binder.integer(args[2]) if len(args) > 2 else Literal(-1, INT)
    text = converted(binder.string(args[0]), STRING)
    return Call("split", (text, Literal(wanted, STRING), converted(most, INT)), array_of(STRING))


def _made_array(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    values = [binder.bind(arg) for arg in args]
    element = binder.common([v.type for v in values], node)
    return Call("array", tuple(converted(v, element) for v in values), array_of(element))


def _made_map(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    if len(args) % 2:
        raise binder.error("map takes keys and values in turn.", node, got=f"{len(args)} of them")
    bound = [binder.bind(arg) for arg in args]
    key, value = (binder.common([v.type for v in bound[which::2]], node) for which in (0, 1))
    comparable(binder, key, node)
    values = tuple(converted(v, value if at % 2 else key) for at, v in enumerate(bound))
    return Call("map", values, map_of(key, value))


def _made_struct(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    """`struct(a, b AS c)`: names are those of columns and fields, or made."""
    named: list[tuple[str, Expression]] = []
    for at, arg in enumerate(args, 1):
        inner = binder.reading.need(arg, "this") if isinstance(arg, exp.Alias) else arg
        name = binder.reading.name(arg, "alias") if isinstance(arg, exp.Alias) else _own_name(inner)
        named.append((name or f"col{at}", binder.bind(inner)))
    return _struct(binder, node, named)


def _own_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    return str(node.name) if isinstance(node, exp.Column) else ""


def _named_struct(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    named: list[tuple[str, Expression]] = []
    for name, value in zip(args[::2], args[1::2], strict=False):
        bound = binder.bind(name)
        if not isinstance(bound, Literal) or not isinstance(bound.value, str) or not bound.value:
            raise binder.error("The name of a field must be a constant.", name, got=shown(name), hint="write 'name'")
        named.append((bound.value, binder.bind(value)))
    if len(args) % 2:
        raise binder.error("named_struct takes names and values in turn.", node, got=f"{len(args)} of them")
    return _struct(binder, node, named)


def _struct(binder: ExpressionBinder, node: exp.Expr, named: list[tuple[str, Expression]]) -> Expression:
    names = [name.lower() for name, _ in named]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise binder.error("Two fields of a struct have the same name.", node, got=double, hint="rename one with AS")
    type_ = struct_of((name, value.type) for name, value in named)
    return Call("struct", tuple(value for _, value in named), type_)


def _of_map(name: str, returns: Callable[[DataType, DataType], DataType]) -> Rule:
    def rule(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
        value = _map(binder, args[0])
        return Call(name, (value,), returns(*(kind for _, kind in value.type.parts)))

    return rule


def _has_key(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    value = _map(binder, args[0])
    return Call("map_contains_key", (value, _like_key(binder, value, args[1])), BOOLEAN)


def _from_entries(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    array = _array(binder, args[0])
    entry = array.type.element
    if entry.name != "struct" or len(entry.parts) != 2:
        raise binder.error("An array of structs of two fields is expected.", args[0], got=str(array.type))
    key, value = (kind for _, kind in entry.parts)
    comparable(binder, key, node)
    return Call("map_from_entries", (array,), map_of(key, value))


def concatenated(binder: ExpressionBinder, values: list[Expression], node: exp.Expr) -> Expression:
    """`concat` of arrays."""
    type_ = binder.common([v.type for v in values], node)
    return Call("array_concat", tuple(converted(v, type_) for v in values), type_)


RULES: dict[str, tuple[int, int | None, Rule]] = {
    "get": (2, 2, _item_of("get")),
    "element_at": (2, 2, _item_of("element_at")),
    "try_element_at": (2, 2, _item_of("try_element_at")),
    "size": (1, 1, _size),
    "array": (0, None, _made_array),
    "map": (2, None, _made_map),
    "struct": (1, None, _made_struct),
    "named_struct": (2, None, _named_struct),
    "map_keys": (1, 1, _of_map("map_keys", lambda key, value: array_of(key))),
    "map_values": (1, 1, _of_map("map_values", lambda key, value: array_of(value))),
    "map_entries": (
        1, 1, _of_map("map_entries", lambda key, value: array_of(struct_of([("key", key), ("value", value)])))
    ),
    "map_from_entries": (1, 1, _from_entries),
    "map_contains_key": (2, 2, _has_key),
    "array_contains": (2, 2, _with_element("array_contains", BOOLEAN)),
    "array_position": (2, 2, _with_element("array_position", BIGINT)),
    "array_remove": (2, 2, _with_element("array_remove")),
    "arrays_overlap": (2, 2, _of_arrays("arrays_overlap", BOOLEAN)),
    "array_union": (2, 2, _of_arrays("array_union")),
    "array_intersect": (2, 2, _of_arrays("array_intersect")),
    "array_except": (2, 2, _of_arrays("array_except")),
    "array_distinct": (1, 1, _of_array("array_distinct")),
    "array_min": (1, 1, _extreme("array_min")),
    "array_max": (1, 1, _extreme("array_max")),
    "sort_array": (1, 2, _sorted),
    "array_sort": (1, 1, _array_sort),
    "array_compact": (1, 1, _compacted),
    "array_join": (2, 3, _joined),
    "array_repeat": (2, 2, _repeated),
    "flatten": (1, 1, _flattened),
    "slice": (3, 3, _slice),
    "split": (2, 3, _split),
}  # fmt: skip
"""How many values, at least and at most, and the rule."""


def is_access(expression: Expression) -> bool:
    """Whether it is a part of a column, by name or constant."""
    while isinstance(expression, Call) and expression.name in ("field", "item", "map_value"):
        expression = expression.args[0]
    return isinstance(expression, Column)
