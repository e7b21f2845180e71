"""Says the same thing once in a while, for what a client would repeat many times a second.

What is new is logged at once. What was logged within `EVERY` seconds is counted, and the next time it is logged the
number is told. How long something took (`after 3ms in state CONNECT`) does not make it new. It has the one method of a
logger that librdkafka calls.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

EVERY = 60.0
"""So many seconds pass before the same thing is logged again."""
REMEMBERED = 100
"""So many different things are known at a time; of more, the one that was logged first is new again."""
_PASSING = re.compile(r" \(after [^()]*(\([^()]*\)[^()]*)*\)")


@dataclass
class _Said:
    """What was logged before."""

    at: float
    since: int = 0
    """How often it came since then."""


class Seldom:
    """A logger of which nobody hears the same thing all the time; from any thread."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        """For one client."""
        self.logger, self._clock = logger, clock
        self._said: dict[str, _Said] = {}
        self._guard = threading.Lock()

    def log(self, level: int, message: str, *values: object) -> None:
        """Log it, or count it."""
        if not self.logger.isEnabledFor(level):
            return
        text = message % values if values else message
        since = self._missed(_PASSING.sub("", text))
        if since is not None:
            again = f" (and {since} times more in the meantime)" if since else ""
            self.logger.log(level, "%s%s", text, again)

    def warning(self, message: str, *values: object) -> None:
        """As a warning."""
        self.log(logging.WARNING, message, *values)

    def _missed(self, what: str) -> int | None:
        """How often it came since it was logged; None if that is not to be told yet."""
        with self._guard:
            now, said = self._clock(), self._said.get(what)
            if said is not None and now - said.at < EVERY:
                said.since += 1
                return None
            self._said.pop(what, None)
            if len(self._said) >= REMEMBERED:
                del self._said[next(iter(self._said))]
            self._said[what] = _Said(now)
            return 0 if said is None else said.since
