"""Inner joins that follow on one another, run as one operator where that costs less.

As a tree, each join keeps what those below it give: intermediate results, which are wide and may be many. As one
operator (MJoin), only the rows of the streams are kept, and each that comes looks for partners in all other streams
again. What is cheaper is reckoned per row of each stream, in lookups. Of how many rows of another stream a row meets
nothing is known when a query is planned: one, if columns of the two are equal, and `WIDE` if their times alone say. An
intermediate result of a tree is looked up, kept and given up: `KEPT`. A row that comes looks first where it meets few.

- tree: a lookup per stream, and `KEPT` for every intermediate result;
- one operator: for each stream a lookup, and one for each that a row has met before the last stream.

The joins must be of bands, each input by one attribute, and the conditions between them must always have a value, so
that it does not matter when they are asked. Streams that are promised of by groups stay in a tree, which makes use of
that. `/*+ MULTIWAY_JOIN */` and `/*+ BINARY_JOINS */` after SELECT say how it is
to be, and so does state that is there already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

from penstock.model.time import longest
from penstock.plan.cost import Choice
from penstock.plan.differences import Difference, differences
from penstock.plan.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    always_has_value,
    columns_in,
    substitute,
)
from penstock.plan.join_nodes import Band, Join
from penstock.plan.multi_nodes import Apart, Member, MultiJoin, Taken
from penstock.plan.node import Node
from penstock.plan.nodes import Select

TREE, ONE = "tree", "one operator"
WIDE, KEPT = 100.0, 2.0
UNITS = "in lookups for a row of each stream"
Decide = Callable[[Choice], bool]
"""Whether joins are to be one operator, given what it costs and the tree does."""


@dataclass
class _Flat:
    """Joins that follow on one another, taken apart."""

    inputs: list[Node] = field(default_factory=list)
    columns: list[Taken] = field(default_factory=list)
    """What the columns of the node are."""
    apart: list[tuple[Member, Member, int, int]] = field(default_factory=list)
    """What the joins say of two times, the last of them last."""
    held: list[tuple[Member, Member, int, int]] = field(default_factory=list)
    """What conditions say of two of these times."""
    equal: list[tuple[Member, Member]] = field(default_factory=list)
    conditions: list[tuple[Expression, dict[str, Taken]]] = field(default_factory=list)
    joined: list[list[int]] = field(default_factory=list)
    """The inputs of each join below the last one."""

    def member(self, taken: Taken) -> Member:
        """A column of an input."""
        return taken.inputs[0], self.inputs[taken.inputs[0]].schema.names[taken.place]


def cheaper(choice: Choice) -> bool:
    """Whether one operator costs less."""
    return choice.name == ONE


def multiway(plan: Node, decide: Decide = cheaper, *, hints: bool = True) -> Node:
    """The plan with joins as one operator, where that is decided or, with `hints`, where the query says so."""
    further = partial(multiway, decide=decide, hints=hints)
    flat = _flattened(plan)
    made = None if flat is None or len(flat.inputs) < 3 else _multi(plan, flat)
    if flat is None or made is None:
        return plan.with_inputs(*map(further, plan.inputs))
    hint = next((n.as_one for n in joins_at_top(plan) if n.as_one is not None), None) if hints else None
    choice = chosen(made, flat)
    reason = f"{choice}, {UNITS}" if hint is None else f"{ONE if hint else TREE}, as the query says"
    if not (decide(choice) if hint is None else hint):
        return _tree(plan, further, reason)
    return replace(made, why=reason).with_inputs(*map(further, made.inputs))


def _tree(node: Node, further: Callable[[Node], Node], why: str) -> Node:
    """Joins as they are, the last of which knows why, over inputs of which more is made."""
    if _flattened(node) is None:
        return further(node)
    below = node.with_inputs(*[_tree(each, further, "") for each in node.inputs])
    if isinstance(below, Select):
        return replace(below, input=replace(below.input, why=why)) if isinstance(below.input, Join) else below
    assert isinstance(below, Join)
    return replace(below, why=why) if why else below


def candidates(plan: Node) -> list[Node]:
    """The plan as it would be run, then with all such joins as one operator, then with none."""
    return [multiway(plan), multiway(plan, lambda _: True, hints=False), plan]


def chosen(made: MultiJoin, flat: _Flat) -> Choice:
    """What costs less, the joins as they are written or one operator."""
    size = len(made.streams)
    written = [{a, b} for (a, _), (b, _) in flat.equal]
    tree = size + KEPT * sum(_results(inputs, written)[-1] for inputs in flat.joined)
    linked = [{at for at, _ in members} for members in made.equal]
    one = 0.0
    for first in range(size):
        order = [first]
        while len(order) < size:
            rest = [at for at in range(size) if at not in order]
            order.append(min(rest, key=lambda at: _meets(order, at, linked)))
        one += sum(_results(order, linked)[:-1])
    return Choice(TREE if tree <= one else ONE, {TREE: tree, ONE: one})


def _results(order: list[int], linked: list[set[int]]) -> list[float]:
    """How many results a row of the first comes to with each further one."""
    found = [1.0]
    for at in range(1, len(order)):
        found.append(found[-1] * _meets(order[:at], order[at], linked))
    return found


def _meets(known: list[int], other: int, linked: list[set[int]]) -> float:
    """How many rows of another input the rows of some inputs meet."""
    return 1.0 if any(other in inputs and inputs & set(known) for inputs in linked) else WIDE


def joins_at_top(node: Node) -> list[Join]:
    """The joins that follow on one another at the top of a plan."""
    if isinstance(node, Select):
        return joins_at_top(node.input)
    if not isinstance(node, Join):
        return []
    return [node, *joins_at_top(node.left), *joins_at_top(node.right)]


def _flattened(node: Node) -> _Flat | None:
    """A node taken apart; None if it is no such join, nor conditions over one."""
    match node:
        case Join(kind="inner", near=Band() as band, condition=None):
            return _of_join(node, band)
        case Select(input=below, predicate=predicate):
            flat = _flattened(below)
            return None if flat is None else _chosen_from(flat, node, _split(predicate))
        case _:
            return None


def _chosen_from(flat: _Flat, node: Node, conditions: list[Expression]) -> _Flat | None:
    """Joins with conditions: what bounds two times that the joins compare, on both sides, is as a band of theirs."""
    names = dict(zip(node.schema.names, flat.columns, strict=True))
    compared = {member for first, second, _, _ in flat.apart for member in (first, second)}
    times: dict[str, Member] = {}
    for name, taken in names.items():
        if not taken.is_time and (found := flat.member(taken)) in compared:
            times[name] = found
    moved = [condition for condition in conditions if _only_moves(condition)]
    for one, other in combinations(times, 2):
        known, said = differences(moved, [one], [other]).get((one, other), (Difference(), []))
        if times[one][0] != times[other][0] and known.low is not None and known.high is not None:
            flat.held.append((times[one], times[other], known.low, known.high))
            conditions = [c for c in conditions if not any(c is each for each in said)]
    flat.conditions += [(each, names) for each in conditions]
    return flat if all(map(always_has_value, conditions)) else None


def _only_moves(condition: Expression) -> bool:
    """Whether a condition compares columns to which no more is added than a window is long, which cannot fail."""
    match condition:
        case Call(name="eq" | "le" | "lt" | "ge" | "gt", args=args):
            return all(isinstance(arg, Column) or _is_moved(arg) for arg in args)
        case _:
            return False


def _is_moved(expression: Expression) -> bool:
    match expression:
        case Call(name="add" | "time_add" | "subtract", args=(Column(type=of), Literal(value=int() as by))):
            return of.domain is not None and abs(by) <= longest(of.domain)
        case _:
            return False


def _split(predicate: Expression) -> list[Expression]:
    """The conditions that are joined by AND."""
    if getattr(predicate, "name", "") == "and":
        return [each for part in predicate.args for each in _split(part)]  # type: ignore[union-attr]
    return [predicate]


def _of_join(node: Join, band: Band) -> _Flat | None:
    left, right = (_flattened(below) or _leaf(below) for below in node.inputs)
    shift = len(left.inputs)
    flat = _Flat([*left.inputs, *right.inputs], list(left.columns))
    moved = [Taken(tuple(at + shift for at in t.inputs), t.place) for t in right.columns]
    flat.columns += moved
    every = tuple(range(len(flat.inputs)))
    flat.columns.append(Taken(every))

    def member(columns: list[Taken], at: int) -> Member | None:
        taken = columns[at]
        return None if taken.is_time else flat.member(taken)

    def pair(one: str, other: str) -> tuple[Member, Member] | None:
        found = member(left.columns, node.left.schema.index(one)), member(moved, node.right.schema.index(other))
        return None if found[0] is None or found[1] is None else (found[0], found[1])

    on, equal = pair(*node.on), [pair(*names) for names in node.equal]
    if on is None or None in equal:
        return None  # the later of two times is none of a stream
    flat.apart = [*left.apart, *_shifted(right.apart, shift), (*on, band.low, band.high)]
    flat.held = [*left.held, *_shifted(right.held, shift)]
    flat.equal = [*left.equal, *[(_by(a, shift), _by(b, shift)) for a, b in right.equal], *[e for e in equal if e]]
    flat.conditions = [*left.conditions, *[(e, _all_by(names, shift)) for e, names in right.conditions]]
    below = [*left.joined, *[[at + shift for at in inputs] for inputs in right.joined]]
    below += [list(range(shift))] * (shift > 1)
    below += [[at + shift for at in range(len(right.inputs))]] * (len(right.inputs) > 1)
    flat.joined = below
    return flat


def _by(member: Member, shift: int) -> Member:
    return member[0] + shift, member[1]


def _shifted(apart: list[tuple[Member, Member, int, int]], shift: int) -> list[tuple[Member, Member, int, int]]:
    return [(_by(a, shift), _by(b, shift), low, high) for a, b, low, high in apart]


def _all_by(names: dict[str, Taken], shift: int) -> dict[str, Taken]:
    return {name: Taken(tuple(at + shift for at in t.inputs), t.place) for name, t in names.items()}


def _leaf(node: Node) -> _Flat:
    return _Flat([node], [Taken((0,), place) for place in range(len(node.schema.fields))])


def _multi(node: Node, flat: _Flat) -> MultiJoin | None:
    """The node of joins that were taken apart; None where they cannot be one."""
    if any(below.speaks_of_groups for below in flat.inputs):  # a tree hands promises of groups on
        return None
    attributes: dict[int, set[str]] = {}
    for first, second, _, _ in flat.apart:
        for at, name in (first, second):
            attributes.setdefault(at, set()).add(name)
    if any(len(names) > 1 for names in attributes.values()):
        return None
    on = tuple(attributes[at].pop() for at in range(len(flat.inputs)))
    apart = tuple(Apart(a, b, low, high) for (a, _), (b, _), low, high in (*flat.apart, *flat.held))
    if not _can_hold(len(on), apart):
        return None
    fields, conditions = node.schema, []
    for condition, names in flat.conditions:
        if any(names[name].is_time for name in columns_in(condition)):
            return None
        own = {name: fields.fields[flat.columns.index(names[name])] for name in columns_in(condition)}
        conditions.append(substitute(condition, {name: Column(f.name, f.type) for name, f in own.items()}))
    (a, _), (b, _) = flat.apart[-1][:2]
    columns, equal = tuple(flat.columns), _classes(flat.equal)
    return MultiJoin(tuple(flat.inputs), on, apart, equal, columns, fields, tuple(conditions), (a, b))


def _can_hold(size: int, apart: tuple[Apart, ...]) -> bool:
    """Whether rows of some times can meet at all."""
    most = [[0 if i == j else None for j in range(size)] for i in range(size)]
    for _ in range(size):
        for each in apart:
            for one, other, by in ((each.first, each.second, each.high), (each.second, each.first, -each.low)):
                for start in range(size):
                    known = most[start][one]
                    if known is not None and (most[start][other] is None or known + by < most[start][other]):  # type: ignore[operator]
                        most[start][other] = known + by
    return all(most[at][at] == 0 for at in range(size))


def _classes(equal: list[tuple[Member, Member]]) -> tuple[tuple[Member, ...], ...]:
    """The columns that are equal to one another, through others too."""
    classes: list[set[Member]] = []
    for pair in equal:
        touched = [members for members in classes if members & set(pair)]
        classes = [members for members in classes if not members & set(pair)]
        classes.append(set(pair).union(*touched))
    return tuple(tuple(sorted(members)) for members in classes)
