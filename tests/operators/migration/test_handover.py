"""A handover gives each time's results from the plan whose it is, and promises what holds of both.

```
old   5   10   15   20 | 25 .. kept, in case the new plan is given up
new   ..   .    .    . | 20   30
                       split
```
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import InternalError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, groupwise, joint, linear
from penstock.model.schema import schema_of
from penstock.operators.migration.handover import NEW, OLD, HandoverOperator, Phase
from penstock.operators.migration.since import Since
from penstock.operators.migration.until import Until
from penstock.operators.state import MemoryPages

SCHEMA = schema_of([("t", "bigint"), ("k", "bigint")], "t")
SPLIT = 20


def batch(*times: int) -> Batch:
    return Batch(SCHEMA, [(t, 0) for t in times])


def handover(promised: int = -100) -> HandoverOperator:
    return HandoverOperator(SCHEMA, SCHEMA, SPLIT, promised)


def told(outputs: Any) -> list[Any]:
    return [[row[0] for row in each.rows] if isinstance(each, Batch) else each for each in outputs]


def test_until_and_since_part_results_by_their_start() -> None:
    until, since = Until("t", SPLIT), Since(SPLIT)
    assert told(filter(None, until.cut(batch(19, 20, 5)))) == [[19, 5], [20]]
    assert until.cut(batch()) == (None, None)
    assert until.cut(batch(21))[0] is None
    assert told(filter(None, [since.cut(batch(19, 20, 5))])) == [[20]]
    assert since.cut(batch(1)) is None


def test_a_promise_of_the_old_plan_is_cut_at_the_split() -> None:
    until = Until("t", SPLIT)
    assert until.promise(groupwise("t", 50, k=1)) == groupwise("t", 20, k=1)
    assert until.promise(groupwise("t", 5, k=1)) == groupwise("t", 5, k=1)
    assert until.promise(joint(t=30, k=7)) == joint(t=20, k=7)
    assert until.promise(linear("k", 7)) is None


def test_each_time_has_one_plan_and_the_old_one_comes_first() -> None:
    made = handover()
    assert told(made.process(NEW, batch(15, 20, 30))) == []  # waits for what the old one gives in the same go
    assert told(made.process(OLD, batch(10, 25))) == [[10]]
    assert told(made.punctuate(OLD, linear("t", 12))) == [linear("t", 12)]
    assert told(made.release()) == [[20, 30]]
    assert told(made.punctuate(NEW, linear("t", 40))) == []
    assert told(made.process(OLD, batch(15, 22))) == [[15]]
    assert told(made.punctuate(OLD, linear("t", 23))) == [linear("t", 40)]
    assert made.phase is Phase.NEW
    assert told(made.process(NEW, batch(41))) == [[41]]


def test_a_bound_is_never_said_twice() -> None:
    made = handover(promised=15)
    assert told(made.punctuate(OLD, linear("t", 15))) == []
    assert told(made.punctuate(NEW, linear("t", 18))) == []
    assert told(made.punctuate(OLD, linear("t", 90))) == [linear("t", 20)]
    assert told(made.punctuate(NEW, linear("t", 20))) == []
    assert told(made.punctuate(NEW, linear("t", 21))) == [linear("t", 21)]


def test_what_the_new_plan_promises_besides_is_said_when_it_speaks() -> None:
    made = handover()
    assert told(made.punctuate(NEW, groupwise("t", 60, k=1))) == []
    assert told(made.punctuate(OLD, groupwise("t", 60, k=2))) == [groupwise("t", 20, k=2)]
    assert told(made.punctuate(OLD, linear("t", 20))) == [groupwise("t", 60, k=1), linear("t", 20)]


def test_undone_it_is_as_if_nothing_had_been() -> None:
    made = handover()
    outputs: list[Any] = []
    for port, given in ((OLD, batch(10, 25)), (OLD, batch(30)), (NEW, batch(3))):
        outputs += told(made.process(port, given))
    outputs += told(made.punctuate(OLD, groupwise("t", 60, k=2)))
    outputs += told(made.undo())
    assert outputs == [[10], groupwise("t", 20, k=2), [25], [30], groupwise("t", 60, k=2)]
    assert made.phase is Phase.OLD
    assert told(made.process(OLD, batch(26))) == [[26]]
    assert told(made.punctuate(OLD, linear("t", 50))) == [linear("t", 50)]


def test_what_is_out_cannot_be_undone() -> None:
    made = handover()
    list(made.process(NEW, batch(20)))
    list(made.release())
    with pytest.raises(InternalError, match="cannot be undone"):
        list(made.undo())


def test_an_old_plan_that_has_itself_taken_over_speaks_from_then_on() -> None:
    made = handover()
    made.speak_from(12)
    assert told(made.process(OLD, batch(10, 15))) == [[15]]
    assert made.spoken_from == 12
    list(made.take_over())
    assert made.spoken_from == SPLIT


def test_its_state_is_plain() -> None:
    made = handover()
    list(made.process(OLD, batch(10, 25)))
    list(made.process(NEW, batch(30)))
    list(made.punctuate(NEW, groupwise("t", 60, k=1)))
    plain = {key: made.to_plain(key, made.pages.get(key)) for key in made.pages.keys()}  # noqa: SIM118
    again = handover()
    again.attach(MemoryPages({key: again.from_plain(key, data, 1) for key, data in plain.items()}))
    outputs = told(again.punctuate(OLD, Punctuation((("t", 20),))))
    assert outputs == [[30], groupwise("t", 60, k=1), linear("t", 20)]
