"""What a Python process of Spark's keeps for as long as it lives: modules, and what they hold.

Behind every task such a process looks through all of its objects for garbage, which takes tens of milliseconds where
pandas, Arrow and Penstock are loaded, as long as the whole of a small task. What it has loaded with its first task of
ours is no garbage and never will be, so from its second one on that is left out. The second, not the first: modules
are loaded where they are needed, and by then the garbage of the first task is gone.
"""

from __future__ import annotations

import gc

_tasks = 0
SETTLED = 2
"""With so many tasks begun, a process has loaded what it needs."""


def begin_task() -> None:
    """A task of ours begins in this process."""
    global _tasks  # noqa: PLW0603 - of the process
    _tasks += 1
    if _tasks == SETTLED:
        gc.freeze()
