"""A fingerprint changes with what a function does, and with nothing else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock.plan.function_code import fingerprint, same_code


def defined(source: str, name: str = "f", **names: object) -> Any:
    """What some source defines, in a module of its own."""
    scope: dict[str, Any] = {"__name__": "users_module", **names}
    exec(source, scope)
    return scope[name]


BASE = "def f(x, y=2):\n    return x + y * 3\n"


@pytest.mark.parametrize(
    "same",
    [
        "\n\n\ndef f(x, y=2):\n    # a comment\n    return x + y * 3\n",
        "def f(x, y=2):\n    'What it does.'\n    return x + y * 3\n",
        "def f(a, b=2):\n    return a + b * 3\n",
        "def f(x: int, y: int = 2) -> int:\n    return x + y * 3\n",
    ],
)
def test_wording_does_not_matter(same: str) -> None:
    assert fingerprint(defined(BASE)) == fingerprint(defined(same))


@pytest.mark.parametrize(
    "other",
    [
        "def f(x, y=2):\n    return x + y * 4\n",
        "def f(x, y=3):\n    return x + y * 3\n",
        "def f(x, y=2):\n    return x - y * 3\n",
        "def f(x, y=2.0):\n    return x + y * 3\n",
        "def f(x, *, y=2):\n    return x + y * 3\n",
        "def f(x, y=2):\n    return (lambda: x + y * 3)()\n",
    ],
)
def test_what_it_does_matters(other: str) -> None:
    assert fingerprint(defined(BASE)) != fingerprint(defined(other))


def made(threshold: Any) -> Callable[[int], bool]:
    return lambda x: x > threshold


def test_what_it_closes_over_matters() -> None:
    assert fingerprint(made(5)) == fingerprint(made(5))
    assert fingerprint(made(5)) != fingerprint(made(6))
    assert fingerprint(made(5)) != fingerprint(made(5.0))
    assert fingerprint(made([1])) == fingerprint(made([2]))  # what may change as it runs is not looked into


def test_constants_and_functions_of_its_module_matter() -> None:
    uses = "def g(x):\n    return x {op} 1\ndef f(x):\n    return g(x) + LIMIT\n"
    base = fingerprint(defined("LIMIT = 5\n" + uses.format(op="+")))
    assert base == fingerprint(defined("LIMIT = 5\nOTHER = 6\n" + uses.format(op="+")))
    assert base != fingerprint(defined("LIMIT = 6\n" + uses.format(op="+")))
    assert base != fingerprint(defined("LIMIT = 5\n" + uses.format(op="-")))


def test_what_a_function_counts_for_itself_does_not_matter() -> None:
    source = "calls = {n}\ndef f(x):\n    global calls\n    calls += 1\n    return x\n"
    assert fingerprint(defined(source.format(n=0))) == fingerprint(defined(source.format(n=7)))


def test_recursion_ends() -> None:
    source = "def f(n):\n    return 1 if n < 2 else n * g(n - 1)\ndef g(n):\n    return f(n)\n"
    assert fingerprint(defined(source)) == fingerprint(defined(source))


def test_sets_of_constants_have_no_order() -> None:
    one = "def f(x):\n    return x in {'a', 'b', 'c', 'd'}\n"
    two = "def f(x):\n    return x in {'d', 'c', 'b', 'a'}\n"
    assert fingerprint(defined(one)) == fingerprint(defined(two))


AGGREGATE = (
    "class Top:\n"
    "    def __init__(self, n={n}):\n        self.n = n\n        self.seen = []\n"
    "    def lift(self, v):\n        return (v,)\n"
    "    def combine(self, a, b):\n        return tuple(sorted(a + b)[-self.n:])\n"
    "    def lower(self, p):\n        return p[{which}]\n"
)


def test_an_aggregate_is_known_by_its_methods_and_settings() -> None:
    top = defined(AGGREGATE.format(n=3, which=0), "Top")
    base = fingerprint(top(3))
    used = top(3)
    used.seen.append(1)
    assert base == fingerprint(defined(AGGREGATE.format(n=3, which=0), "Top")(3)) == fingerprint(used)
    assert base != fingerprint(top(4))
    assert base != fingerprint(defined(AGGREGATE.format(n=3, which=1), "Top")(3))


def test_partials_builtins_and_methods_have_fingerprints() -> None:
    add = defined("def f(x, y):\n    return x + y\n")
    assert fingerprint(functools.partial(add, 1)) == fingerprint(functools.partial(add, 1))
    assert fingerprint(functools.partial(add, 1)) != fingerprint(functools.partial(add, 2))
    assert fingerprint(abs) == fingerprint(abs)
    assert fingerprint(abs) != fingerprint(len)
    assert fingerprint("abc".upper) != fingerprint("abc".lower)
    assert fingerprint(str.upper) == fingerprint(str.upper)
    assert fingerprint(str.upper) != fingerprint(str.lower)
    assert fingerprint(np.abs) != fingerprint(np.negative)


def test_what_is_wrapped_in_a_cache_matters() -> None:
    source = "from functools import cache\n@cache\ndef f(x):\n    return x {op} 1\n"
    assert fingerprint(defined(source.format(op="+"))) == fingerprint(defined(source.format(op="+")))
    assert fingerprint(defined(source.format(op="+"))) != fingerprint(defined(source.format(op="-")))


def test_objects_that_are_called_are_known_by_what_they_do() -> None:
    source = "class Scale:\n    def __init__(self, by):\n        self.by = by\n"
    source += "    def __call__(self, x):\n        return x {op} self.by\n"
    base = fingerprint(defined(source.format(op="*"), "Scale")(2))
    assert base == fingerprint(defined(source.format(op="*"), "Scale")(2))
    assert base != fingerprint(defined(source.format(op="*"), "Scale")(3))
    assert base != fingerprint(defined(source.format(op="/"), "Scale")(2))


def test_a_declared_version_is_all_that_counts() -> None:
    assert fingerprint(made(5), "2") == fingerprint(made(6), "2") == "2"


def test_code_of_two_pythons_cannot_be_told_apart() -> None:
    assert same_code("py3.11/1:aa", "py3.12/1:bb")
    assert same_code("py3.11/1:aa", "py3.11/2:bb")  # nor can what was looked at in two ways
    assert not same_code("py3.11/1:aa", "py3.11/1:bb")
    assert not same_code("1", "2")
    assert not same_code("1", "py3.11/1:aa")
    assert same_code("py3.11/1:aa", "py3.11/1:aa")
