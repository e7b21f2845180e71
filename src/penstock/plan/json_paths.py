"""`get_json_object`: a value within a JSON text, by a path of names and places.

A path is `$`, then any number of `.name`, `['name']` and `[3]`. A text gives what it says, anything else its JSON, as
short as can be. There is none where the path leads nowhere or to a null of an object, and for a text that is no JSON.
As in Spark, texts may stand in single quotes and hold control characters, and what follows the first value does not
count. Of several members of one name the first counts that leads somewhere. Numbers with a fraction or an exponent are
written as Java writes doubles.

A text is read as a list of tokens, each as it is written in a result, so a value is a run of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from penstock.plan.java_numbers import java_double

Path = tuple[str | int, ...]
_STEP = re.compile(r"\.([^.\[\]*'\"]+)|\['([^'?*]+)'\]|\[([0-9]{1,18})\]")
_BLANK = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_WORD = re.compile(r"(true|false|null)(?![\w$])")
_TEXT = {
    quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\[\"'\\/bfnrt]|\\u[0-9a-fA-F]{{4}})*+){quote}") for quote in "\"'"
}
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WRITTEN = {v: "\\" + k for k, v in _CONTROLS.items()} | {'"': '\\"', "\\": "\\\\"}
_TO_WRITE = re.compile(r'["\\\x00-\x1f]')
_DEEPEST, _LONGEST_NUMBER = 1000, 1000

# What is expected, and what each kind of token leads to.
_VALUE, _VALUE_OR_END, _NAME, _NAME_OR_END, _COLON, _AFTER = range(6)
_NEXT = {
    **{(state, "{"): _NAME_OR_END for state in (_VALUE, _VALUE_OR_END)},
    **{(state, "["): _VALUE_OR_END for state in (_VALUE, _VALUE_OR_END)},
    **{(state, kind): _AFTER for state in (_VALUE, _VALUE_OR_END) for kind in ("text", "scalar")},
    **{(state, "text"): _COLON for state in (_NAME, _NAME_OR_END)},
    **dict.fromkeys(((_VALUE_OR_END, "]"), (_NAME_OR_END, "}")), _AFTER),
    **{(_AFTER, sign): _AFTER for sign in "]}"},
    (_COLON, ":"): _VALUE,
}
_CLOSES = {"{": "}", "[": "]"}


class NotJson(ValueError):
    """A text that is no JSON."""


class _Token(NamedTuple):
    kind: str
    written: str
    says: str | None = None
    """Of a text."""


@lru_cache(maxsize=256)
def read_path(text: str) -> Path | None:
    """The steps of a path; None if it is none."""
    if not text.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return None
        steps.append(int(step[3]) if step[3] is not None else step[1] or step[2])
        at = step.end()
    return tuple(steps)


def get(text: str, path: Path) -> str | None:
    """What stands at a path."""
    try:
        tokens = _value(text)
    except NotJson:
        return None
    at = _find(tokens, 0, path)
    if at is None:
        return None
    says = tokens[at].says
    return says if says is not None else "".join([t.written for t in tokens[at : _end(tokens, at)]])


def _find(tokens: list[_Token], at: int, path: Path) -> int | None:
    """Where the value is that a path leads to, from the value that begins at a token."""
    if not path:
        return at
    step, rest = path[0], path[1:]
    is_place = isinstance(step, int)
    if tokens[at].kind != ("[" if is_place else "{"):
        return None
    at, place = at + 1, 0
    while tokens[at].kind not in ("]", "}"):
        held = at if is_place else at + 2  # after a name and a colon
        if place == step if is_place else tokens[at].says == step and tokens[held].written != "null":
            found = _find(tokens, held, rest)
            if found is not None or is_place:
                return found
        at, place = _end(tokens, held), place + 1
        at += tokens[at].kind == ","
    return None


def _end(tokens: list[_Token], at: int) -> int:
    """The token after the value that begins at one."""
    depth = 0
    while True:
        kind = tokens[at].kind
        depth += (kind in _CLOSES) - (kind in ("]", "}"))
        at += 1
        if depth == 0:
            return at


def _value(text: str) -> list[_Token]:
    """The tokens of the first value of a text."""
    result: list[_Token] = []
    closing: list[str] = []
    state = _VALUE
    for token in _tokens(text):
        kind = token.kind
        if state == _AFTER and kind == ",":
            state = _NAME if closing[-1] == "}" else _VALUE
        else:
            if kind in ("]", "}") and (not closing or closing.pop() != kind):
                raise NotJson
            if (state, kind) not in _NEXT:
                raise NotJson
            state = _NEXT[state, kind]
            closing += [_CLOSES[kind]] if kind in _CLOSES else []
        result.append(token)
        if len(closing) > _DEEPEST:
            raise NotJson
        if state == _AFTER and not closing:
            _check_end(token, text)
            return result
    raise NotJson


def _tokens(text: str) -> Iterator[_Token]:
    """The tokens of a text, one after the other."""
    at = 0
    while True:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if at == len(text):
            return
        sign = text[at]
        if sign in "{}[],:":
            at += 1
            yield _Token(sign, sign)
            continue
        found = (_TEXT.get(sign) or (_WORD if sign.isalpha() else _NUMBER)).match(text, at)
        if found is None:
            raise NotJson
        at = found.end()
        if sign in _TEXT:
            says = _unescaped(found[1])
            yield _Token("text", _quoted(says), says)
        else:
            yield _Token("scalar", found[0] if sign.isalpha() else _number(found[1], found[2]))


def _check_end(token: _Token, text: str) -> None:
    """After a number that is the whole value nothing may stand but a blank."""
    whole = _NUMBER.match(text, len(text) - len(text.lstrip(" \t\n\r")))
    if token.kind == "scalar" and whole is not None and text[whole.end() : whole.end() + 1] not in ("", *" \t\n\r"):
        raise NotJson


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    made = _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else _CONTROLS.get(m[2], m[2]), text)
    try:
        return made.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise NotJson from None


def _number(whole: str, rest: str) -> str:
    if len(whole) + len(rest) > _LONGEST_NUMBER:
        raise NotJson
    if not rest:
        return str(int(whole))
    written = java_double(float(whole + rest))
    return _quoted(written) if written.endswith("Infinity") else written


def _quoted(text: str) -> str:
    return '"' + _TO_WRITE.sub(lambda m: _WRITTEN.get(m[0]) or f"\\u{ord(m[0]):04X}", text) + '"'
