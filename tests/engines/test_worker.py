"""A worker leaves what it has loaded out of the search for garbage, once it has loaded it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc
from penstock.engines.spark.worker import begin_task

found = []
for _ in range(3):
    begin_task()
    found.append(gc.get_freeze_count())
print(found[0], found[1] > 1000, found[2] == found[1])
"""


def test_from_the_second_task_on() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True", "True"]
