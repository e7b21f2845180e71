r"""LIKE: which texts a pattern matches, in time that grows with the text and the pattern and not beyond.

`%` stands for any characters, `_` for one, a backslash takes `%`, `_` or itself literally. A backslash before anything
else, or at the end, is an error, as in Spark. The pieces between the `%` are looked for from left to right, each where
it first occurs after the one before; that choice is never taken back, since a later occurrence could only leave less
text for the rest. The regular expression says so with atomic groups, which Python and Java have alike, so one text
serves both; the usual translation to `.*` tries every combination of places instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from penstock.errors import EvaluationError

ESCAPE = "\\"


def wrong_escape(pattern: str) -> str:
    """What is wrong with a pattern's escapes, in words; empty if nothing is."""
    at = 0
    while at < len(pattern):
        if pattern[at] == ESCAPE:
            if at + 1 == len(pattern):
                return "the backslash at the end escapes nothing"
            if pattern[at + 1] not in ("%", "_", ESCAPE):
                return f"a backslash cannot escape {pattern[at + 1]!r}"
            at += 1
        at += 1
    return ""


def expression_of(pattern: str) -> str:
    """The regular expression of a pattern, for a match of the whole text in which a dot stands for any character."""
    first, *others = _pieces(pattern)
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>.*?{piece})" for piece in middle if piece) + ".*" + last


def linear_expression_of(pattern: str) -> str:
    """The same for engines of regular expressions that never try twice, and so have no atomic groups."""
    return rf"(?s)\A{'.*'.join(_pieces(pattern))}\z"


def _pieces(pattern: str) -> list[str]:
    """The regular expressions of what stands between the `%`."""
    pieces = [""]
    characters = iter(pattern)
    for char in characters:
        if char == "%":
            pieces.append("")
        elif char == "_":
            pieces[-1] += "."
        else:
            pieces[-1] += _literal(next(characters, char) if char == ESCAPE else char)
    return pieces


def _literal(char: str) -> str:
    return "\\" + char if char.isascii() and not (char.isalnum() or char == "_") else char


def is_simple(pattern: str) -> bool:
    """Whether the usual translation tries one place only: at most one `%`, or one at each end of plain text."""
    if pattern.count("%") <= 1:
        return True
    inner = pattern[1:-1]
    return pattern[0] == pattern[-1] == "%" and not any(c in inner for c in ("%", "_", ESCAPE))


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A test of texts; an error if the pattern's escapes are wrong."""
    wrong = wrong_escape(pattern)
    if wrong:
        raise EvaluationError(
            "The LIKE pattern is wrong.", got=f"{pattern!r}: {wrong}", hint="write two backslashes for one"
        )
    plain = not any(sign in pattern for sign in ("_", ESCAPE))
    if plain and is_simple(pattern):
        return _plain_matcher(pattern)
    match = re.compile(expression_of(pattern), re.DOTALL).fullmatch
    return lambda text: match(text) is not None


def _plain_matcher(pattern: str) -> Callable[[str], bool]:
    """Plain text with at most one `%`, or with one at each end."""
    if pattern.count("%") > 1:
        inner = pattern[1:-1]
        return lambda text: inner in text
    first, percent, last = pattern.partition("%")
    if not percent:
        return first.__eq__
    shortest = len(pattern) - 1
    return lambda text: text.startswith(first) and text.endswith(last) and len(text) >= shortest


def like(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern."""
    return matcher(pattern)(text)
