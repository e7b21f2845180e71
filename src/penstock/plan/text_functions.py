"""Functions of text on single values. Characters are code points, as in Spark; places count from 1.

A text that a function would make longer than `LONGEST` is an error: a number in a row must not fill the memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from penstock.errors import EvaluationError
from penstock.model.schema import DataType
from penstock.plan import json_paths
from penstock.plan.matching import extractor, finder, replacer

Strict = Callable[[list[Any], DataType], Any]

LONGEST = 1 << 24
"""Characters of a text that is made longer by a number: `repeat`, `lpad`, `rpad`."""


def too_long(length: int) -> EvaluationError:
    """The error for a text that would fill the memory."""
    return EvaluationError(
        "The text would be too long.",
        got=f"{length} characters",
        hint=f"no more than {LONGEST}; check the number first",
    )


def substring(args: list[Any], type_: DataType) -> str:
    """From a place, which counts from the end if it is negative, a number of characters."""
    text, start = args[0], args[1]
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else 0)
    end = len(text) if len(args) < 3 else max(begin + max(args[2], 0), 0)
    return str(text[max(begin, 0) : end])


def _right(args: list[Any], type_: DataType) -> str:
    return str(args[0][-args[1] :]) if args[1] > 0 else ""


def _split_part(args: list[Any], type_: DataType) -> str:
    text, separator, place = args
    if place == 0:
        raise EvaluationError("split_part counts parts from 1.", got="0", hint="-1 is the last part")
    parts = text.split(separator) if separator else [text]
    return str(parts[place - 1 if place > 0 else place]) if abs(place) <= len(parts) else ""


def _replace(args: list[Any], type_: DataType) -> str:
    text, search, replacement = args
    return str(text.replace(search, replacement)) if search else str(text)


def _locate(args: list[Any], type_: DataType) -> int:
    """The place of the first text in the second, from a place on; 0 if there is none."""
    search, text, start = args
    if start < 1:
        return 0
    return int(text.find(search, start - 1)) + 1 if search else 1


def _pad(args: list[Any]) -> tuple[str, str]:
    """What a text is cut to, and what is put beside it."""
    text, length, filler = args
    missing = length - len(text)
    if missing <= 0 or not filler:
        return text[: max(length, 0)], ""
    if length > LONGEST:
        raise too_long(length)
    return text, (filler * (missing // len(filler) + 1))[:missing]


def _lpad(args: list[Any], type_: DataType) -> str:
    text, fill = _pad(args)
    return fill + text


def _rpad(args: list[Any], type_: DataType) -> str:
    text, fill = _pad(args)
    return text + fill


def _repeat(args: list[Any], type_: DataType) -> str:
    text, times = args
    if len(text) * times > LONGEST:
        raise too_long(len(text) * times)
    return str(text * times)


def _initcap(args: list[Any], type_: DataType) -> str:
    """Words are what stands between spaces."""
    return " ".join([word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in args[0].split(" ")])


def _translate(args: list[Any], type_: DataType) -> str:
    text, given, others = args
    table: dict[int, str | None] = {}
    for at, char in enumerate(given):
        table.setdefault(ord(char), others[at] if at < len(others) else None)
    return str(text.translate(table))


def _chr(args: list[Any], type_: DataType) -> str:
    return "" if args[0] < 0 else chr(args[0] & 0xFF)


def _sha2(args: list[Any], type_: DataType) -> str | None:
    text, bits = args
    if bits not in (0, 224, 256, 384, 512):
        return None
    return hashlib.new(f"sha{bits or 256}", text.encode()).hexdigest()


def _json(args: list[Any], type_: DataType) -> str | None:
    path = json_paths.read_path(args[1])
    return None if path is None else json_paths.get(args[0], path)


def concat_ws(values: list[Any]) -> str | None:
    """Texts with the first between them, those that are null left out; null if the first is."""
    return None if values[0] is None else str(values[0]).join([v for v in values[1:] if v is not None])


TEXT: dict[str, Strict] = {
    "length": lambda args, type_: len(args[0]),
    "lower": lambda args, type_: args[0].lower(),
    "upper": lambda args, type_: args[0].upper(),
    "trim": lambda args, type_: args[0].strip(args[1] if len(args) > 1 else " "),
    "ltrim": lambda args, type_: args[0].lstrip(args[1] if len(args) > 1 else " "),
    "rtrim": lambda args, type_: args[0].rstrip(args[1] if len(args) > 1 else " "),
    "concat": lambda args, type_: "".join(args),
    "substring": substring,
    "left": lambda args, type_: args[0][: max(args[1], 0)],
    "right": _right,
    "split_part": _split_part,
    "replace": _replace,
    "locate": _locate,
    "lpad": _lpad,
    "rpad": _rpad,
    "repeat": _repeat,
    "reverse": lambda args, type_: args[0][::-1],
    "initcap": _initcap,
    "translate": _translate,
    "startswith": lambda args, type_: args[0].startswith(args[1]),
    "endswith": lambda args, type_: args[0].endswith(args[1]),
    "contains": lambda args, type_: args[1] in args[0],
    "ascii": lambda args, type_: ord(args[0][0]) if args[0] else 0,
    "chr": _chr,
    "md5": lambda args, type_: hashlib.md5(args[0].encode(), usedforsecurity=False).hexdigest(),
    "sha1": lambda args, type_: hashlib.sha1(args[0].encode(), usedforsecurity=False).hexdigest(),
    "sha2": _sha2,
    "rlike": lambda args, type_: finder(args[1])(args[0]),
    "regexp_extract": lambda args, type_: extractor(args[1], args[2])(args[0]),
    "regexp_replace": lambda args, type_: replacer(args[1], args[2])(args[0]),
    "get_json_object": _json,
}
