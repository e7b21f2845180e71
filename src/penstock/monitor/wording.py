"""Texts of drawings: on one line, as wide as they are shown, broken where they are too wide."""

from __future__ import annotations

import unicodedata


def on_one_line(text: str) -> str:
    """Without breaks and signs that cannot be shown, which no format could hold."""
    shown = "".join(sign if _is_shown(sign) else "�" if not sign.isspace() else " " for sign in text)
    return " ".join(shown.split())


def _is_shown(sign: str) -> bool:
    return (
        unicodedata.category(sign) not in ("Cc", "Cs", "Cn", "Zl", "Zp")
        and sign not in "\ufeff\u202a\u202b\u202c\u202d\u202e"
    )


def columns(text: str) -> int:
    """How many columns of a terminal, or of a font of one width, a text takes."""
    return sum(0 if unicodedata.combining(s) else 2 if unicodedata.east_asian_width(s) in "WF" else 1 for s in text)


def broken(text: str, width: int) -> list[str]:
    """On several lines of at most so many columns: between words, and within those that are wider."""
    lines, line = [], ""
    for word in on_one_line(text).split(" "):
        rest = word
        if line and columns(line) + 1 + columns(rest) <= width:
            line += " " + rest
            continue
        if line:
            lines.append(line)
        while columns(rest) > width:
            cut = _fitting(rest, width)
            lines.append(rest[:cut])
            rest = rest[cut:]
        line = rest
    return [*lines, line]


def _fitting(text: str, width: int) -> int:
    """How many signs from the first fit."""
    taken = 0
    for at, sign in enumerate(text):
        taken += columns(sign)
        if taken > width:
            return max(at, 1)
    return len(text)


def cut(text: str, width: int) -> str:
    """On one line of at most so many columns."""
    line = on_one_line(text)
    return line if columns(line) <= width else line[: _fitting(line, width - 1)] + "…"
