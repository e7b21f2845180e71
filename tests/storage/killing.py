"""A process that dies between any two operations on files: what it has done is done, what it knows is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.storage.files import Place

FOREVER = 10**9


class Killed(Exception):
    """The process dies here."""


class Life:
    """How many operations on files are left."""

    def __init__(self) -> None:
        self.left = FOREVER


@contextlib.contextmanager
def mortal() -> Iterator[Life]:
    """While it lasts, every operation that changes files costs one step of a life, and without any it raises."""
    life = Life()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("write", "put", "move", "delete"):
            patch.setattr(Place, name, _step(life, getattr(Place, name)))
        yield life


def _step(life: Life, original: Any) -> Any:
    def step(place: Place, *arguments: object) -> object:
        life.left -= 1
        if life.left < 0:
            raise Killed
        return original(place, *arguments)

    return step
