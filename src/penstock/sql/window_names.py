"""The names that windows have elsewhere: those that are read here, and what to write for the others."""

from __future__ import annotations

HOW_WINDOWS_ARE_WRITTEN = "write a window clause in brackets: [RANGE …, SLIDE …, WA …]"
_SESSION = "sessions are not supported; windows of a fixed length are: [RANGE 10 minutes, SLIDE 1 minute, WA ts]"
_CUMULATE = "windows that grow are not supported; write TUMBLE with the step, and sum up its results"
_END = "write window_end, at which the window is complete"
WHAT_TO_WRITE = {
    "session": _SESSION, "session_window": _SESSION, "session_start": _SESSION, "session_end": _SESSION,
    "cumulate": _CUMULATE, "window_time": _END, "tumble_rowtime": _END, "tumble_proctime": _END, "hop_rowtime": _END,
    "hop_proctime": _END, "session_rowtime": _SESSION, "session_proctime": _SESSION,
}  # fmt: skip
"""Windows that are not supported, and what there is instead."""
READ = frozenset({"window", "tumble", "hop", "tumble_start", "tumble_end", "hop_start", "hop_end"})
"""Windows and bounds of windows that are."""
WINDOW_FUNCTIONS = READ | WHAT_TO_WRITE.keys()
_PLACES = {
    "window": "window(…) stands in GROUP BY; in the select list write window.start and window.end",
    "tumble": "TUMBLE(…) stands in GROUP BY, or after FROM as TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), length))",
    "hop": "HOP(…) stands in GROUP BY, or after FROM as TABLE(HOP(TABLE s, DESCRIPTOR(ts), slide, length))",
}


def what_to_write(name: str) -> str:
    """What to write for a function that windows have elsewhere, where it cannot stand; empty for any other name."""
    lower = name.lower()
    if lower not in WINDOW_FUNCTIONS:
        return ""
    return WHAT_TO_WRITE.get(lower) or _PLACES.get(lower) or HOW_WINDOWS_ARE_WRITTEN
