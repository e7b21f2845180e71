"""Rounds of micro-batches: one that is done again goes by the same, whatever became of the file; damage is no end."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from penstock.engines.spark.bucket_queues import QUEUES
from penstock.engines.spark.queue_rounds import QueueRounds
from penstock.engines.spark.rounds import FOLDER, Round, put_round, read_round, round_of
from penstock.errors import CheckpointError
from penstock.storage.files import place_of
from penstock.storage.log import Record, number_name

MADE = Round(70, 60, {"queue": [2, 0, 3]})


def test_the_first_that_is_written_counts(tmp_path: Path) -> None:
    home = place_of(tmp_path)
    assert put_round(home, 4, MADE) == MADE
    assert put_round(home, 4, Round(99)) == MADE
    assert read_round(home, 4) == MADE
    assert (MADE.share("queue", 2), MADE.share("another", 2)) == (3, None)


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"a": 1}', '{"now": "x", "delivered": null, "most": {}}'])
def test_one_that_is_damaged_is_written_anew(damaged: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = place_of(tmp_path)
    put_round(home, 4, Round(1))
    (tmp_path / FOLDER / number_name(4)).write_text(damaged)
    with caplog.at_level(logging.WARNING, "penstock.run"):
        assert put_round(home, 4, MADE) == MADE
    assert "the round of micro-batch 4 is written anew" in caplog.text
    assert read_round(home, 4) == MADE


@pytest.mark.parametrize("plain", [[], {"a": 1}, {**asdict(MADE), "most": {"q": 3}}, {**asdict(MADE), "most": [2]}])
def test_what_is_no_round_is_told_to_tasks(plain: Any, tmp_path: Path) -> None:
    home = place_of(tmp_path)
    assert round_of(plain) is None
    (home / FOLDER / number_name(4)).write_json(plain)
    with pytest.raises(CheckpointError, match=r"The round of a micro-batch is damaged\."):
        read_round(home, 4)
    with pytest.raises(CheckpointError, match=r"The round of a micro-batch is not there\."):
        read_round(home, 5)


@pytest.mark.parametrize("queues", [{QUEUES: {"now": 70, "round": asdict(MADE), "told": {}}}, {}])
def test_a_micro_batch_with_a_record_goes_by_what_the_record_says(queues: dict[str, Any], tmp_path: Path) -> None:
    rounds = QueueRounds.__new__(QueueRounds)
    rounds.home = place_of(tmp_path)
    rounds.begin_again(Record("run", 3, 4, state=queues))
    assert (tmp_path / FOLDER / number_name(4)).exists() == bool(queues)
    if queues:
        assert read_round(rounds.home, 4) == MADE
