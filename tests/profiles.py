"""How many examples a property test is given where one costs much: few by default, as many as `make fuzz` asks for."""

from __future__ import annotations

from hypothesis import settings

DEFAULT = 40


def examples(count: int) -> settings:
    """`count` examples in a profile of no more than the default's; the profile's own number otherwise."""
    given = settings.default.max_examples
    return settings(max_examples=min(count, given) if given <= DEFAULT else given)
