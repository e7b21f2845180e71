"""What is known of a stream before it runs.

Properties are derived through the plan, operator by operator, and decide the algorithm: which merge, which aggregate,
whether a way of migrating is valid. Each is a promise: where nothing is known, the weaker value stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.errors import StreamError


def _each(key: object) -> Iterable[object]:
    return key if isinstance(key, frozenset | set | tuple | list) else (None,)


@dataclass(frozen=True)
class StreamProperties:
    """The promises that a stream keeps."""

    ordered: bool = False
    """Elements come in order of their start."""
    strictly_ordered: bool = False
    """Ordered, and no two elements start together."""
    insert_only: bool = True
    """There are no adjusts."""
    key: frozenset[str] | None = None
    """These attributes, with the start of an element, tell any two elements apart."""
    deterministic_ties: bool = False
    """Elements that start together come in the same order on every replica."""
    max_disorder: int | None = None
    """No element comes more than so many ticks behind the greatest start before it; None where nothing bounds it."""
    lifetime: int | None = 1
    """No element lives longer than so many ticks; None where there is no such bound."""
    unique: frozenset[str] | None = None
    """These attributes by themselves tell any two elements apart, whenever they start; null equals nothing here."""
    update_key: frozenset[str] | None = None
    """Each element updates the one before it that is equal in these attributes, so that only the newest matters (an
    update stream); without attributes, each updates the one before it. None where all elements matter."""

    def __post_init__(self) -> None:
        """Promises are truth values, a set of names and numbers of ticks."""
        for name in ("ordered", "strictly_ordered", "insert_only", "deterministic_ties"):
            if not isinstance(getattr(self, name), bool):
                raise StreamError(f"{name} is True or False.", got=repr(getattr(self, name))[:200])
        for key in (self.key, self.unique, self.update_key):
            if key is not None and (isinstance(key, str) or not all(isinstance(k, str) for k in _each(key))):
                raise StreamError("A key is a set of names of columns.", got=repr(key)[:200], hint="frozenset({'k'})")
        for name in ("max_disorder", "lifetime"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise StreamError(f"{name} is a number of ticks.", got=repr(value)[:200], hint="or None")

    def describe(self, called: Mapping[str, str] | None = None) -> list[str]:
        """The promises in words; `called` says what columns are called, if not by their names."""
        words = []
        if self.strictly_ordered:
            words.append("strictly ordered")
        elif self.ordered:
            words.append("ordered")
        elif self.max_disorder is not None:
            words.append(f"disorder <= {self.max_disorder} ticks")
        else:
            words.append("disordered")
        words.append("insert-only" if self.insert_only else "with adjusts")
        if self.key is not None:
            words.append(f"key ({', '.join(sorted((called or {}).get(name, name) for name in self.key))})")
        elif self.unique is not None:
            words.append(f"unique ({', '.join(sorted((called or {}).get(name, name) for name in self.unique))})")
        if self.update_key is not None:
            by = ", ".join(sorted((called or {}).get(name, name) for name in self.update_key))
            words.append(f"updates by ({by})" if by else "each updates the one before")
        if self.deterministic_ties:
            words.append("deterministic ties")
        words.append(f"lifetime <= {self.lifetime} ticks" if self.lifetime is not None else "unbounded lifetime")
        return words


def renamed_all(key: frozenset[str] | None, names: Mapping[str, str]) -> frozenset[str] | None:
    """A key under other names; None where one of its columns has none."""
    return frozenset(names[name] for name in key) if key is not None and key <= names.keys() else None
