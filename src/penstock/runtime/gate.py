"""A gate that lets one thread in at a time and costs a pusher of single rows next to nothing.

A lock that is taken and given back for every row costs half as much as the row does. Here a row that is pushed looks at
a flag and sets it, with no call in between, and the interpreter switches threads only at calls and backward jumps: so
the two steps are one, as long as there is a global interpreter lock. Who finds the flag set waits and looks again; that
is rare, since threads are switched a few hundred times a second and rows take a microsecond. Everything else enters by
`alone`, which holds a real lock as well, and may be entered again by the same thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PAUSE = 20e-6


class Gate:
    """Open, or held by one thread."""

    def __init__(self) -> None:
        """Open."""
        self.held = [False]
        """The flag. Compiled code does `while held[0]: pause()`, then `held[0] = True`, and clears it in the end."""
        self._lock = threading.RLock()
        self._depth = 0

    @staticmethod
    def pause() -> None:
        """Let others run."""
        time.sleep(PAUSE)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else is inside."""
        with self._lock:
            if self._depth == 0:
                held = self.held
                while held[0]:
                    self.pause()
                held[0] = True
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.held[0] = False
