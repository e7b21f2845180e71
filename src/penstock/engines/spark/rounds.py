"""The round of a micro-batch: what time it is to queues, and how many rows each bucket lets go on.

Operators have no clock, and a micro-batch that is done again must do the same. So before a micro-batch is evaluated the
driver writes its round down, under its number, unless it is there already: then the micro-batch was interrupted, and is
done again by the same clock and with the same budget. Tasks know the number of their micro-batch and read the round.
The record of a micro-batch has its round as well: one that was recorded and is done again, so that Spark gets its state
anew, has it from there if the file is gone. Without a record nothing of the micro-batch was seen by anybody, and
another round is as good. So the files can be deleted between two starts, and one that is damaged is written anew.

What a bucket lets go is processed when the record of the micro-batch is kept. So the round of the next one says when
that was, and each queue takes note of it first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pyspark import TaskContext

from penstock.engines.spark.at_work import BATCH, noted
from penstock.errors import CheckpointError, StorageError
from penstock.storage.files import Place, place_of
from penstock.storage.log import KEEP, number_name

FOLDER = "rounds"
LOGGER = logging.getLogger("penstock.run")


@dataclass(frozen=True)
class Round:
    """What one micro-batch goes by; times are in microseconds since 1970."""

    now: int
    delivered: int | None = None
    """When what went on with the micro-batch before was processed."""
    most: Mapping[str, list[int]] = field(default_factory=dict)
    """By the identity of a queue, how many rows go on from each bucket; all that wait where it is not told."""

    def share(self, identity: str, bucket: int) -> int | None:
        """How many rows of a queue go on from a bucket; None for all."""
        found = self.most.get(identity)
        return None if found is None else found[bucket]


EVERYTHING = Round(0)
"""Of a batch, which is all there is."""


def put_round(home: Place, batch: int, made: Round) -> Round:
    """The round of a micro-batch: the one that was written down when it was first begun, or this one."""
    file = home / FOLDER / number_name(batch)
    if file.put_json(asdict(made)):
        if batch >= KEEP:
            (home / FOLDER / number_name(batch - KEEP)).delete()
        return made
    try:
        return read_round(home, batch)
    except (CheckpointError, StorageError) as error:
        LOGGER.warning("%s: the round of micro-batch %d is written anew: %s", home, batch, error.what)
        file.write_json(asdict(made))
        return made


def read_round(home: Place, batch: int) -> Round:
    """The round of a micro-batch."""
    file = home / FOLDER / number_name(batch)
    try:
        found = file.read_json()
    except FileNotFoundError:
        raise CheckpointError(
            "The round of a micro-batch is not there.",
            where=str(file),
            got=f"micro-batch {batch} is at work",
            hint="it was deleted while the query ran; start the query again",
        ) from None
    made = round_of(found)
    if made is None:
        raise CheckpointError(
            "The round of a micro-batch is damaged.",
            where=str(file),
            got=repr(found)[:100],
            hint="it was changed while the query ran; start the query again",
        )
    return made


def round_of(plain: object) -> Round | None:
    """A round of the form in which it is written down; None if it is none."""
    if not isinstance(plain, Mapping) or {*plain} != {"now", "delivered", "most"}:
        return None
    now, delivered, most = plain["now"], plain["delivered"], plain["most"]
    shares = most.values() if isinstance(most, Mapping) else (None,)
    numbers = [now, *([] if delivered is None else [delivered])]
    for share in shares:
        if not isinstance(share, list):
            return None
        numbers += share
    return Round(now, delivered, dict(most)) if all(type(number) is int for number in numbers) else None


def round_at_work(home: str) -> Round:
    """The round of the micro-batch that a task works for."""
    task = TaskContext.get()
    batch = None if task is None else task.getLocalProperty(BATCH)
    return read_round(place_of(home), noted(home) if batch is None else int(batch))
