"""What is late where several attributes progress, by hand."""

from __future__ import annotations

from typing import Literal

from penstock.model.batch import Row
from penstock.model.elements import Punctuation, groupwise, joint, linear
from penstock.model.progress import Progress, bounded, declared, ordered, punctuated
from penstock.model.schema import progressing, schema_of
from penstock.model.time import END_OF_TIME
from penstock.plan.catalog import Catalog
from penstock.reference.arrivals import Arrivals
from penstock.reference.attributes import JudgedAttributes, judge_attributes

SCHEMA = progressing(schema_of([("ts", "bigint"), ("seq", "int"), ("k", "string")], "ts"), ["ts", "seq"])
LINEAR = declared({"ts": bounded(5), "seq": ordered()}, "ts")
SPOKEN = declared({"ts": punctuated("k = 'p'"), "seq": punctuated("k = 'p'")}, "ts")
JOINT = declared({"ts": bounded(100), "seq": bounded(100), ("ts", "seq"): punctuated("k = 'p'")}, "ts")


def play(
    progress: Progress, *batches: list[Row | Punctuation], by: Literal["row", "batch"] = "row"
) -> JudgedAttributes:
    stream = Arrivals("s", SCHEMA, progress, ())
    return judge_attributes(stream.declared(Catalog()), batches, by)


def test_a_row_is_late_by_any_attribute_and_still_tells_of_the_others() -> None:
    #  ts   10   50   44   46
    #  seq   1    3    4    2
    #            bounds ts 45, seq 3: the third is late by ts and raises seq to 4, the last is late by seq
    judged = play(LINEAR, [(10, 1, "a"), (50, 3, "b"), (44, 4, "c"), (46, 2, "d")])
    assert judged.late == (((44, 4, "c"), linear("ts", 45)), ((46, 2, "d"), linear("seq", 4)))
    assert judged.bounds == ({"ts": 45, "seq": 4},)


def test_by_batch_nothing_moves_inside_one() -> None:
    rows: list[Row | Punctuation] = [(50, 3, "b"), (44, 2, "c")]
    assert not play(LINEAR, rows, by="batch").late
    judged = play(LINEAR, rows, [(46, 1, "d")], by="batch")
    assert judged.late == (((46, 1, "d"), linear("seq", 3)),)


def test_of_two_bounds_the_one_declared_first_is_named() -> None:
    rows: list[Row | Punctuation] = [(50, 3, "b"), (1, 1, "c")]
    assert play(LINEAR, rows).late[0][1] == linear("ts", 45)
    other = declared({"seq": ordered(), "ts": bounded(5)}, "ts")
    assert play(other, rows).late[0][1] == linear("seq", 3)


def test_a_null_attribute_is_dead_in_data_and_silence_in_punctuation() -> None:
    judged = play(SPOKEN, [(1, None, "a"), (None, 5, "p"), (None, None, "p"), (0, 4, "b"), (0, 5, "c"), (7, None, "p")])
    assert judged.refused == (((1, None, "a"), "incomplete"), ((None, None, "p"), "incomplete"))
    assert judged.late == (((0, 4, "b"), linear("seq", 5)),)
    assert judged.bounds == ({"ts": 7, "seq": 5},)


def test_punctuation_that_goes_backwards_in_one_attribute_still_speaks_for_the_other() -> None:
    judged = play(SPOKEN, [(10, 10, "p"), (5, 20, "p")])
    assert judged.backwards == (((5, 20, "p"), linear("ts", 10)),)
    assert judged.bounds == ({"ts": 10, "seq": 20},)


def test_joint_punctuation_condemns_what_is_below_all_of_its_bounds() -> None:
    judged = play(JOINT, [(10, 10, "p"), (9, 9, "late"), (9, 10, "a"), (10, 9, "b"), (None, 12, "p"), (99, 11, "seq")])
    assert judged.late == (((9, 9, "late"), joint(seq=10, ts=10)), ((99, 11, "seq"), linear("seq", 12)))
    assert judged.promises == ((joint(seq=10, ts=10),),)


def test_of_promises_of_several_attributes_the_greatest_is_named() -> None:
    outside: list[Row | Punctuation] = [joint(ts=10, seq=9), joint(ts=10, seq=10), joint(ts=9, seq=50), (1, 1, "a")]
    assert play(JOINT, outside).late[0][1] == joint(seq=10, ts=10)
    of_a = Punctuation((("seq", 10), ("ts", 10)), (("k", "a"),))
    assert play(JOINT, [of_a, joint(ts=10, seq=10), (1, 1, "a")]).late[0][1] == joint(seq=10, ts=10)
    assert play(JOINT, [of_a, (1, 1, "b"), (1, 1, "a")]).late == (((1, 1, "a"), of_a),)


def test_promises_from_outside_of_groups_and_of_the_end() -> None:
    judged = play(JOINT, [groupwise("seq", 5, k="a"), (1, 4, "a"), (1, 4, "b")])
    assert judged.late == (((1, 4, "a"), groupwise("seq", 5, k="a")),)
    judged = play(JOINT, [linear("seq", END_OF_TIME), (1, 4, "a")])
    assert judged.late == (((1, 4, "a"), linear("ts", END_OF_TIME)),)
