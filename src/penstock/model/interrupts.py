"""Exceptions that a signal handler raised while something else was at work, and that are nobody's failure.

Python runs the handlers of signals in the main thread, between any two instructions. What a handler raises, a time
limit or `sys.exit`, comes up in whatever was at work, and there looks like an error of that: of a user's aggregate,
say, whose window would be a dead letter, while the program would never learn of its signal. Whoever takes errors for
failures of rows therefore lets these through.

A handler is known by what it was given: the number of a signal, and the very frame that it has interrupted. One that
has let go of either is known if it is what a signal of `ASKED` is handled by. A handler that is no Python function, one
that has given both other values, and exceptions that another thread has put into this one, cannot be told from errors
of the code at work. Asking costs some microseconds, of errors only.
"""

from __future__ import annotations

import signal
import threading
from types import CodeType, FrameType
from typing import Any

NUMBERS = frozenset(int(number) for number in signal.valid_signals())
ASKED = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGALRM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGPROF")
    if hasattr(signal, name)
)
"""Signals whose handlers are looked up."""


def let_through(error: BaseException) -> None:
    """Raise an exception again that a signal handler raised."""
    if is_from_signal(error):
        raise error


def is_from_signal(error: BaseException) -> bool:
    """Whether a signal handler raised an exception that was just caught."""
    if threading.current_thread() is not threading.main_thread():
        return False
    doubtful: list[CodeType] = []
    trace, interrupted = error.__traceback__, None
    while trace is not None:
        frame = trace.tb_frame
        if interrupted is not None and (frame.f_code.co_argcount >= 2 or frame.f_code.co_flags & _VARIABLE):
            has_frame, has_number, lacks = _given(frame, interrupted)
            if has_frame and has_number:
                return True
            if has_frame or lacks:
                doubtful.append(frame.f_code)
        trace, interrupted = trace.tb_next, frame
    return bool(doubtful) and any(_code_of(signal.getsignal(number)) in doubtful for number in ASKED)


def _given(frame: FrameType, interrupted: FrameType) -> tuple[bool, bool, bool]:
    """Whether a function was given the frame before it, and a number of a signal; and whether it has let go of any."""
    code, known = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARIABLE)]
    given: list[Any] = []
    for name in names:
        value = known.get(name)
        given += value if isinstance(value, tuple) else [value]
    has_frame = any(value is interrupted for value in given)
    has_number = has_frame and any(isinstance(value, int) and value in NUMBERS for value in given)
    return has_frame, has_number, any(name not in known for name in names)


_VARIABLE = 0x04
"""Of code that takes any number of values."""


def _code_of(handler: Any) -> CodeType | None:
    """The code of a handler that is written in Python, however it is wrapped."""
    for _ in range(_WRAPPED):
        if isinstance(getattr(handler, "__code__", None), CodeType):
            return handler.__code__  # type: ignore[no-any-return]
        inner = getattr(handler, "func", None) or getattr(handler, "__func__", None)
        if inner is None:
            inner = getattr(type(handler), "__call__", None)  # noqa: B004
        if inner is None:
            return None
        handler = inner
    return None


_WRAPPED = 5
"""Wrapped more often than this, a handler is not looked into."""
