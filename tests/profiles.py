"""How much a test is given where one case costs much: few by default, more if `make fuzz` or `make test-slow` ask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

DEFAULT = 15


def examples(count: int) -> settings:
    """`count` examples in a profile of no more than the default's; the profile's own number otherwise."""
    given = settings.default.max_examples
    return settings(max_examples=min(count, given) if given <= DEFAULT else given)


def some_and_slow(cases: Iterable[Any], count: int) -> list[Any]:
    """All cases, of which only the first so many are not marked slow."""
    listed = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.slow] if at >= count else []) for at, case in enumerate(listed)]
