"""Fingerprints of users' functions: whether the code that a checkpoint was made with is still the same.

A fingerprint covers the byte code with its constants and defaults, values that the function closes over, and constants
and functions of its own module that it uses; not names of local variables, line numbers, comments and docstrings. It
does not see into lists, dictionaries and other objects, which may change as the function runs, nor into other modules.
Who needs more, or less, declares a version instead, and then only the version counts.

Byte code differs from one Python to the next, and a later release may take fingerprints in another way: what is not
comparable counts as the same.
"""

from __future__ import annotations

import datetime as dt
import dis
import functools
import hashlib
import sys
from collections.abc import Iterator
from decimal import Decimal
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, type(...), Decimal, dt.date, dt.datetime, dt.timedelta)
_WAY = 1
"""Of taking fingerprints: whoever changes what they cover gives the next number, and old ones are not compared."""
_PYTHON = f"py{sys.version_info.major}.{sys.version_info.minor}/{_WAY}:"


def fingerprint(value: Any, version: object = None) -> str:
    """What a function, or an object with methods, is known by: its declared version, or its code."""
    if version is not None:
        return str(version)
    return _PYTHON + hashlib.sha256(repr(_Walk().of(value)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def same_code(left: str, right: str) -> bool:
    """Whether two fingerprints may be of the same code."""
    if left == right:
        return True
    pythons = [text.partition(":")[0] for text in (left, right)]
    return pythons[0] != pythons[1] and all(p.startswith("py3.") for p in pythons)


class _Walk:
    """One walk through a function and what it uses; what is under way is not entered again."""

    def __init__(self) -> None:
        self.entered: set[int] = set()

    def of(self, value: Any, module: str | None = None) -> Any:
        """A value as nested tuples of text; `module` limits it to what is defined there."""
        if isinstance(value, tuple | frozenset) and type(value) in (tuple, frozenset):
            items = [repr(self.of(v, module)) for v in value]
            return type(value).__name__, *(sorted(items) if type(value) is frozenset else items)
        if type(value) in _CONSTANTS:
            return type(value).__name__, repr(value)
        if id(value) in self.entered:
            return "again", _name(value)
        self.entered.add(id(value))
        match value:
            case CodeType():
                return self._code(value, module)
            case FunctionType():
                return self._function(value, module)
            case MethodType():
                return "method", self.of(value.__func__, module), self.of(value.__self__, module)
            case functools.partial():
                return "partial", self.of(value.func, module), self.of(value.args, module), self._named(value.keywords)
            case ModuleType() | BuiltinFunctionType():
                return type(value).__name__, _name(value)
            case type():
                return self._class(value, module)
            case _:
                return self._object(value, module)

    def _function(self, function: FunctionType, module: str | None) -> Any:
        if module is not None and function.__module__ != module:
            return "function", _name(function)
        own = function.__module__
        cells = [self._cell(cell, own) for cell in function.__closure__ or ()]
        used = {n: self.of(function.__globals__[n], own) for n in _globals(function) if n in function.__globals__}
        return (
            "function",
            self._code(function.__code__, own, function.__doc__),
            self.of(function.__defaults__, own),
            self._named(function.__kwdefaults__ or {}, own),
            *cells,
            *sorted(used.items()),
        )

    def _code(self, code: CodeType, module: str | None, doc: str | None = None) -> Any:
        constants = code.co_consts
        if constants and constants[0] == doc:  # which has the first place, be it None
            constants = constants[1:]
        shape = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount)
        return "code", code.co_code.hex(), shape, code.co_names, *[self.of(c, module) for c in constants]

    def _cell(self, cell: Any, module: str | None) -> Any:
        try:
            return self.of(cell.cell_contents, module)
        except ValueError:  # not filled yet
            return ("empty",)

    def _named(self, values: dict[str, Any], module: str | None = None) -> Any:
        return tuple((name, self.of(value, module)) for name, value in sorted(values.items()))

    def _class(self, kind: type, module: str | None) -> Any:
        if kind.__module__ == "builtins" or (module is not None and kind.__module__ != module):
            return "class", _name(kind)
        parts = {n: v for n, v in vars(kind).items() if not n.startswith("__") or n in ("__init__", "__call__")}
        plain = {n: _bare(v) for n, v in parts.items()}
        return (
            "class",
            *[self.of(base, kind.__module__) for base in kind.__bases__],
            self._named(plain, kind.__module__),
        )

    def _object(self, value: Any, module: str | None) -> Any:
        kind = type(value)
        wrapped = getattr(value, "__wrapped__", None)
        if isinstance(wrapped, FunctionType):  # such as one with a cache
            return "wrapped", _name(kind), self.of(wrapped, module)
        if isinstance(value, list | dict | set) or (module is not None and kind.__module__ != module):
            return "object", _name(kind)
        held = {n: v for n, v in getattr(value, "__dict__", {}).items() if not isinstance(v, list | dict | set)}
        own = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)  # str.upper, numpy.abs
        return "object", self._class(kind, kind.__module__), str(own), self._named(held, kind.__module__)


def _bare(value: Any) -> Any:
    """The function behind a descriptor."""
    if isinstance(value, staticmethod | classmethod):
        return value.__func__
    return value.fget if isinstance(value, property) else value


def _globals(function: FunctionType) -> Iterator[str]:
    """The global names that a function reads and does not itself assign."""
    read: set[str] = set()
    assigned: set[str] = set()
    codes = [function.__code__]
    for code in codes:
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                read.add(step.argval)
            elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                assigned.add(step.argval)
    return iter(sorted(read - assigned))


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', type(value).__qualname__)}"
