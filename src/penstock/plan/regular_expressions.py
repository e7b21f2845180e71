r"""Regular expressions with the meaning of `java.util.regex`, which is Spark's, written out for three engines of them.

What is read: characters; `.`; classes `[a-z]`, `[^…]`; `\d \w \s` and `\D \W \S`, all of ASCII; `\t \n \r \f`,
`\xhh`, `\uhhhh` and a backslash before what is no letter or digit; groups `(…)`, `(?:…)`, `(?<name>…)`; alternatives;
`^ $ \A \z \b \B`; `* + ? {m} {m,} {m,n}`, also lazy; lookahead; `(?i)` and `(?s)` at the start. Anything else
(backreferences, lookbehind, possessive repetition, `\p{…}`, classes in classes) is refused by name.

A pattern is read once and written anew, so that nothing is left to an engine's own idea: characters as codes, classes
as ranges, letters under `(?i)` as both cases of ASCII. `.` leaves out all line ends that Java knows, `$` stands at the
end or before the last of them. `\b` is between ASCII letters, digits and `_` and what is none, as in Java since 19,
whichever Java runs. A group that can be empty is not repeated, since engines capture differently there.

Python and Java try alternatives one after the other, which takes exponential time where alternatives or repetitions are
themselves repeated. Such patterns, and columns, are given to RE2, which never tries twice; it has no lookahead, so both
together are refused, and its `$` is the end alone, so texts with line ends go to Python.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

Ranges = tuple[tuple[int, int], ...]

_LAST = 0x10FFFF
_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 13), (32, 32))
_LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x85, 0x85), (0x2028, 0x2029))
_SETS = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12}
_LINE_END = "(?:\\r\\n|(?<!\\r)\\n|[\\r\\x85\\u2028\\u2029])"
_MOST_REPEATS = 1000
"""More than so many times nothing is repeated: the limit of RE2."""
_FEW = 16


class WrongPattern(ValueError):
    """A pattern that cannot be read; the text says what is wrong with it."""


@dataclass(frozen=True)
class Piece:
    """A part of an expression, written for each engine; `linear` is RE2's, None where it has no such thing."""

    python: str
    java: str
    linear: str | None
    may_be_empty: bool = False
    varies: bool = False
    """Whether it has alternatives, or something in it is repeated any number of times."""
    nested: bool = False
    """Whether something that varies is repeated, which an engine that tries may take exponential time for."""
    repeats_group: bool = False
    """Whether a group in it is repeated: Java goes deeper with every turn."""
    has_end: bool = False
    """Whether there is a `$` in it."""


@dataclass(frozen=True)
class RegularExpression(Piece):
    """A whole expression."""

    groups: int = 0
    names: tuple[tuple[str, int], ...] = ()


@lru_cache(maxsize=256)
def parse(text: str) -> RegularExpression:
    """The expression of a pattern; WrongPattern if it is none that means the same everywhere."""
    return _Parser(text).whole()


class _Parser:
    """Goes through a pattern once, from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.groups = 0
        self.names: list[tuple[str, int]] = []
        self.folds = self.dot_is_all = False

    def whole(self) -> RegularExpression:
        flags = re.match(r"\(\?([a-zA-Z-]+)\)", self.text)
        if flags:
            self._flags(flags[1])
            self.at = flags.end()
        body = self._alternatives()
        if self.at < len(self.text):
            raise WrongPattern("a closing parenthesis without an opening one")
        if body.linear is not None and not _is_linear(body.linear):
            body = replace(body, linear=None)
        if body.nested and body.linear is None:
            raise WrongPattern("a repeated group that has alternatives or repetitions, together with lookahead")
        return RegularExpression(**vars(body), groups=self.groups, names=tuple(self.names))

    def _flags(self, letters: str) -> None:
        for letter in letters:
            if letter not in "is":
                raise WrongPattern(f"the flag (?{letter})")
        self.folds, self.dot_is_all = "i" in letters, "s" in letters

    def _peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _take(self, text: str) -> bool:
        found = self._peek(text)
        self.at += len(text) if found else 0
        return found

    def _next(self) -> str:
        if self.at == len(self.text):
            raise WrongPattern("an end where something is missing")
        self.at += 1
        return self.text[self.at - 1]

    def _alternatives(self) -> Piece:
        pieces = [self._sequence()]
        while self._take("|"):
            pieces.append(self._sequence())
        if len(pieces) == 1:
            return pieces[0]
        return replace(_joined(pieces, "|", any(p.may_be_empty for p in pieces)), varies=True)

    def _sequence(self) -> Piece:
        pieces: list[Piece] = []
        while self.at < len(self.text) and not self._peek("|") and not self._peek(")"):
            pieces.append(self._repeated())
        return _joined(pieces, "", all(p.may_be_empty for p in pieces))

    def _repeated(self) -> Piece:
        begin = self.at
        piece, can_repeat = self._atom()
        counted = re.compile(r"[*+?]|\{(\d{1,4})(,?)(\d{0,4})\}").match(self.text, self.at)
        if counted is None:
            if self._peek("{"):
                raise WrongPattern("a brace that counts nothing (write \\{ for the character)")
            return piece
        if not can_repeat:
            raise WrongPattern(f"{counted[0]} after {self.text[begin : self.at]}")
        self.at = counted.end()
        sign = counted[0]
        low, high = _counts(counted)
        mark = sign + ("?" if self._take("?") else "")
        if self.at < len(self.text) and self.text[self.at] in "*+?{":
            raise WrongPattern(f"{sign}{self.text[self.at]}, a repetition of a repetition")
        if piece.may_be_empty and high != 1:
            raise WrongPattern(f"a group that can be empty before {sign}")
        return Piece(
            piece.python + mark,
            piece.java + mark,
            None if piece.linear is None else piece.linear + mark,
            may_be_empty=piece.may_be_empty or low == 0,
            varies=piece.varies or high is None or high - low > _FEW,
            nested=piece.nested or (piece.varies and high != 1),
            repeats_group=piece.repeats_group or (self.text[begin] == "(" and high != 1),
            has_end=piece.has_end,
        )

    def _atom(self) -> tuple[Piece, bool]:
        """The next atom, and whether it can be repeated."""
        char = self._next()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._class(), True
            case ".":
                return _of_ranges(((0, _LAST),) if self.dot_is_all else _complement(_LINE_ENDS)), True
            case "^":
                return Piece(r"\A", r"\A", r"\A", may_be_empty=True), False
            case "$":
                return Piece(rf"(?={_LINE_END}?\Z)", "$", r"\z", may_be_empty=True, has_end=True), False
            case "\\":
                return self._escape()
            case "*" | "+" | "?" | "{":
                raise WrongPattern(f"{char} with nothing before it (write \\{char} for the character)")
            case _:
                return _of_ranges(self._folded(((ord(char), ord(char)),))), True

    def _group(self) -> tuple[Piece, bool]:
        looks = next((sign for sign in ("?=", "?!") if self._take(sign)), "")
        opening = "("
        if looks:
            opening = f"({looks}"
        elif self._take("?:"):
            opening = "(?:"
        elif self._peek("?"):
            self._name()
        if opening == "(":
            self.groups += 1
        naming = f"(?P<g{self.groups}>" if opening == "(" else opening  # RE2 gives groups by name
        inner = self._alternatives()
        if not self._take(")"):
            raise WrongPattern("a parenthesis that is not closed")
        linear = None if looks or inner.linear is None else f"{naming}{inner.linear})"
        python, java = f"{opening}{inner.python})", f"{opening}{inner.java})"
        may_be_empty = bool(looks) or inner.may_be_empty
        return replace(inner, python=python, java=java, linear=linear, may_be_empty=may_be_empty), not looks

    def _name(self) -> None:
        named = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>").match(self.text, self.at)
        if named is None:
            raise WrongPattern(f"({self.text[self.at : self.at + 3]}… as the start of a group")
        if named[1] in dict(self.names):
            raise WrongPattern(f"two groups of the name {named[1]}")
        self.names.append((named[1], self.groups + 1))
        self.at = named.end()

    def _escape(self) -> tuple[Piece, bool]:
        char = self._next()
        if char.lower() in _SETS:
            ranges = _SETS[char.lower()]
            return _of_ranges(ranges if char.islower() else _complement(ranges)), True
        if char in "bB":
            return _boundary(inner=char == "B"), False
        if char in "Az":
            return Piece("\\A" if char == "A" else "\\Z", f"\\{char}", f"\\{char}", may_be_empty=True), False
        code = self._code(char)
        return _of_ranges(self._folded(((code, code),))), True

    def _code(self, char: str) -> int:
        """The code of an escaped character."""
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "xu":
            width = 2 if char == "x" else 4
            digits = re.compile(f"[0-9a-fA-F]{{{width}}}").match(self.text, self.at)
            if digits is None or 0xD800 <= int(digits[0], 16) < 0xE000:
                raise WrongPattern(f"\\{char} without the code of a character")
            self.at = digits.end()
            return int(digits[0], 16)
        if char.isascii() and char.isalnum():
            raise WrongPattern(f"\\{char}")
        return ord(char)

    def _folded(self, ranges: Ranges) -> Ranges:
        """With the other case of ASCII letters, where case does not count."""
        if not self.folds:
            return ranges
        other: list[tuple[int, int]] = []
        for low, high in ranges:
            for first, by in ((65, 32), (97, -32)):
                begin, end = max(low, first), min(high, first + 25)
                if begin <= end:
                    other.append((begin + by, end + by))
        return (*ranges, *other)

    def _class(self) -> Piece:
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not (self._peek("]") and ranges):
            ranges += self._item()
        self.at += 1
        folded = self._folded(tuple(ranges))
        return _of_ranges(_complement(folded) if negated else folded)

    def _item(self) -> Ranges:
        """A character, a range of them or a set, within a class."""
        low = self._member()
        if isinstance(low, tuple):
            return low
        if not self._peek("-") or self._peek("-]"):
            return ((low, low),)
        self.at += 1
        high = self._member()
        if isinstance(high, tuple) or high < low:
            raise WrongPattern("a range in a class that does not go from one character to a later one")
        return ((low, high),)

    def _member(self) -> int | Ranges:
        char = self._next()
        if char in "[]" or (char == "&" and self._peek("&")):
            raise WrongPattern(f"{char} in a class (write \\{char} for the character)")
        if char != "\\":
            return ord(char)
        char = self._next()
        if char.lower() in _SETS:
            ranges = _SETS[char.lower()]
            return ranges if char.islower() else _complement(ranges)
        return self._code(char)


def _is_linear(text: str) -> bool:
    """Whether RE2 takes a text: not if it grows too large when repetitions are written out."""
    try:
        pc.match_substring_regex(pa.scalar(""), pattern=text)
    except pa.ArrowInvalid:
        return False
    return True


def _counts(found: re.Match[str]) -> tuple[int, int | None]:
    """The least and the greatest number of a repetition."""
    if not found[0].startswith("{"):
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[found[0]]
    low = int(found[1])
    high = low if not found[2] else int(found[3]) if found[3] else None
    if max(low, high or 0) > _MOST_REPEATS or (high is not None and high < low) or (not found[2] and found[3]):
        raise WrongPattern(f"{found[0]} (up to {_MOST_REPEATS}, the lesser number first)")
    return low, high


def _joined(pieces: list[Piece], sign: str, may_be_empty: bool) -> Piece:
    linear = [p.linear for p in pieces if p.linear is not None]
    return Piece(
        sign.join(p.python for p in pieces),
        sign.join(p.java for p in pieces),
        sign.join(linear) if len(linear) == len(pieces) else None,
        may_be_empty,
        varies=any(p.varies for p in pieces),
        nested=any(p.nested for p in pieces),
        repeats_group=any(p.repeats_group for p in pieces),
        has_end=any(p.has_end for p in pieces),
    )


def _boundary(inner: bool) -> Piece:
    word = _of_ranges(_WORD).python  # plain letters and digits, which all engines write alike
    sides = (f"(?<={word})(?={word})", f"(?<!{word})(?!{word})")
    if not inner:
        sides = (f"(?<={word})(?!{word})", f"(?<!{word})(?={word})")
    text = f"(?:{sides[0]}|{sides[1]})"
    return Piece(text, text, r"\B" if inner else r"\b", may_be_empty=True)


def _complement(ranges: Ranges) -> Ranges:
    result, begin = [], 0
    for low, high in sorted(ranges):
        if begin < low:
            result.append((begin, low - 1))
        begin = max(begin, high + 1)
    return (*result, (begin, _LAST)) if begin <= _LAST else tuple(result)


def _of_ranges(ranges: Ranges) -> Piece:
    """One character out of some ranges; there is none in no range at all."""
    if not ranges:
        raise WrongPattern("a class of no characters")
    return Piece(_written(ranges, braces=False), _written(ranges, braces=True), _written(ranges, braces=True))


def _written(ranges: Ranges, *, braces: bool) -> str:
    texts = [_char(a, braces) if a == b else f"{_char(a, braces)}-{_char(b, braces)}" for a, b in ranges]
    return texts[0] if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else f"[{''.join(texts)}]"


def _char(code: int, braces: bool) -> str:
    if code < 128 and (chr(code).isalnum() or code == 95):
        return chr(code)
    if braces:
        return f"\\x{{{code:x}}}"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
