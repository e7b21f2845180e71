"""A flow that is fed by a broker is killed with -9 at random moments and started again, with the same words.

Its file and its Redis stream then hold what an undisturbed run gives, which is computed here by hand; its topic holds
all of that at least once, and once by the numbers that rows were given.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.killed_flow import DISORDER
from tests.brokers.test_kafka import fill, read_back
from tests.brokers.test_redis import entries, numbers
from tests.flow.test_positions import by_hand, told

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMES = (f"killed-{number}" for number in itertools.count())


@pytest.fixture
def redis_if_there(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("redis_url")) if shutil.which("redis-server") else ""


def messages(chance: random.Random) -> Iterator[Any]:
    """Rows out of order, some of them late, and a few that are malformed."""
    for number in itertools.count():
        t = number // 4 - chance.randrange(DISORDER)
        if chance.random() < 0.01:
            t -= 30
        yield b"not json" if chance.random() < 0.002 else {"t": t, "k": number % 3, "v": chance.randrange(100)}


def judged(given: Sequence[Any]) -> tuple[list[Any], list[Any], int]:
    """By hand, in the order of arrival: rows on time, rows that are late, and how many are no rows."""
    on_time, late, dead = [], [], 0
    greatest = None
    for row in given:
        if isinstance(row, bytes):
            dead += 1
        elif greatest is not None and row["t"] < greatest - DISORDER:
            late.append(row)
        else:
            on_time.append(row)
            greatest = row["t"] if greatest is None else max(greatest, row["t"])
    return on_time, late, dead


def begun(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "killed_flow.py"), *words]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    return subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def killed(process: subprocess.Popen[str], chance: random.Random) -> None:
    """At a random moment: mostly at work, sometimes while it begins."""
    assert process.stdout is not None
    at_work = chance.random() < 0.85
    if at_work:
        assert process.stdout.readline() == "running\n", process.communicate()[1]
    try:
        process.wait(chance.uniform(0, 0.6 if at_work else 1.5))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return
    pytest.fail(f"it ended by itself: {process.communicate()[1]}")


@pytest.mark.parametrize(("kills", "at_once"), [(2, 500), pytest.param(20, 3000, marks=pytest.mark.slow)])
def test_a_flow_that_is_killed(kafka: str, redis_if_there: str, tmp_path: Path, kills: int, at_once: int) -> None:
    """Before each kill so many messages come."""
    chance = random.Random(kills)
    topic, out = next(NAMES), next(NAMES)
    source, given = messages(chance), list[Any]()
    for _ in range(kills):
        fresh = list(itertools.islice(source, at_once))
        fill(kafka, topic, fresh, begin=len(given))
        given += fresh
        killed(begun(str(tmp_path), kafka, topic, out, redis_if_there, ""), chance)
    assert not (tmp_path / "out.jsonl").exists()
    last = begun(str(tmp_path), kafka, topic, out, redis_if_there, "end")
    _, errors = last.communicate(timeout=120)
    assert last.returncode == 0, errors

    on_time, late, dead = judged(given)
    expected = by_hand(on_time)
    lines = {name: (tmp_path / f"{name}.jsonl").read_text().splitlines() for name in ("out", "late", "dead")}
    assert told([json.loads(line) for line in lines["out"]]) == expected
    shown = Counter(json.dumps(row) for row in late)
    assert Counter(json.dumps(json.loads(json.loads(line)["row"])) for line in lines["late"]) == shown
    assert len(lines["dead"]) == dead
    if redis_if_there:
        assert told(numbers(entries(redis_if_there, out))) == expected
    sent = read_back(kafka, out)
    numbered = {dict(message.headers())["penstock-row"]: message.value() for message in sent}
    assert told([json.loads(value) for value in numbered.values()]) == expected
    print(
        f"{kills} kills, {len(given)} messages, {expected.total()} results, {len(late)} late, {dead} dead; "
        f"{len(sent) - len(numbered)} of {len(sent)} messages sent to Kafka came twice"
    )
