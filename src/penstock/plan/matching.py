"""Texts searched by regular expressions: whether one is found, what it found, and what replaces it.

A replacement is Java's: `$1` and `${name}` stand for what a group found, a backslash takes the next character
literally. `$12` is group 12 if there are so many, and group 1 before a `2` otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.plan.regular_expressions import RegularExpression, WrongPattern, parse

T = TypeVar("T")
_LINE_END = re.compile("[\n\r\x85\u2028\u2029]")
Replacement = tuple[str | int, ...]
"""Texts, and groups by number."""


@lru_cache(maxsize=256)
def finder(pattern: str) -> Callable[[str], bool]:
    """Whether a pattern is found in a text."""
    expression = parse(pattern)
    search = re.compile(expression.python).search

    def linear(text: str) -> bool:
        return bool(pc.match_substring_regex(pa.scalar(text), pattern=expression.linear).as_py())

    return _safely(expression, lambda text: search(text) is not None, linear)


@lru_cache(maxsize=256)
def extractor(pattern: str, group: int) -> Callable[[str], str]:
    """What a group found where the pattern is found first; empty if nothing."""
    expression = parse(pattern)
    search = re.compile(expression.python).search

    def tried(text: str) -> str:
        found = search(text)
        return "" if found is None else found[group] or ""

    def linear(text: str) -> str:
        found = pc.extract_regex(pa.scalar(text), pattern=named(expression)).as_py()
        return "" if found is None else str(found[f"g{group}"])

    return _safely(expression, tried, linear)


@lru_cache(maxsize=256)
def replacer(pattern: str, replacement: str) -> Callable[[str], str]:
    """A text with a replacement wherever the pattern is found."""
    expression = parse(pattern)
    parts = read_replacement(replacement, expression)
    compiled = re.compile(expression.python)

    def put(found: re.Match[str]) -> str:
        return "".join([part if isinstance(part, str) else found[part] or "" for part in parts])

    def tried(text: str) -> str:
        return compiled.sub(put, text)

    rewriting = linear_replacement(parts)
    if rewriting is None or expression.may_be_empty:
        return tried

    def linear(text: str) -> str:
        return str(
            pc.replace_substring_regex(pa.scalar(text), pattern=expression.linear, replacement=rewriting).as_py()
        )

    return _safely(expression, tried, linear)


def _safely(expression: RegularExpression, tried: Callable[[str], T], linear: Callable[[str], T]) -> Callable[[str], T]:
    """The way that cannot take exponential time where the other one might."""
    if not expression.nested:
        return tried
    if not expression.has_end:
        return linear
    return lambda text: tried(text) if _LINE_END.search(text) else linear(text)


def named(expression: RegularExpression) -> str:
    """RE2's form in which the whole match has a name, too."""
    return f"(?P<g0>{expression.linear})"


def linear_replacement(parts: Replacement) -> str | None:
    """A replacement as RE2 writes it; None if it names a group beyond the ninth."""
    if any(isinstance(part, int) and part > 9 for part in parts):
        return None
    return "".join([f"\\{part}" if isinstance(part, int) else part.replace("\\", "\\\\") for part in parts])


def read_replacement(text: str, expression: RegularExpression) -> Replacement:
    """The parts of a replacement; WrongPattern if it is wrong, or names a group that the pattern has not."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\":
            if at == len(text):
                raise WrongPattern("a backslash at the end of the replacement")
            parts.append(text[at])
            at += 1
        elif char == "$":
            group, at = _reference(text, at, expression)
            parts.append(group)
        else:
            parts.append(char)
    return tuple(parts)


def _reference(text: str, at: int, expression: RegularExpression) -> tuple[int, int]:
    """The group that stands after a dollar sign, and where the text goes on."""
    name = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}").match(text, at)
    if name is not None:
        group = dict(expression.names).get(name[1])
        if group is None:
            raise WrongPattern(f"${{{name[1]}}}, a group that the pattern has not")
        return group, name.end()
    digits = re.compile("[0-9]+").match(text, at)
    if digits is None:
        raise WrongPattern("a $ without the number of a group (write \\$ for the character)")
    group, at = int(digits[0][0]), at + 1
    for digit in digits[0][1:]:
        if group * 10 + int(digit) > expression.groups:
            break
        group, at = group * 10 + int(digit), at + 1
    if group > expression.groups:
        raise WrongPattern(f"${group}, a group that the pattern has not")
    return group, at
