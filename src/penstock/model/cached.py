"""A property that is computed once for each object, by whichever thread asks first, without a lock.

`functools.cached_property` of Python 3.11 holds one lock for all objects of a class while it computes. The properties
of a plan's nodes ask those of other nodes, so two threads that make queries could wait for each other for ever. Here
both may compute at the same time; what they come to is the same, and the last is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """What the function gives, kept in the object's dictionary under the function's name."""

        def __init__(self, function):
            """`function` is a method without arguments."""
            self.function, self.name = function, function.__name__
            self.__doc__ = function.__doc__

        def __set_name__(self, owner, name):
            """The name in the class."""
            self.name = name

        def __get__(self, instance, owner=None):
            """Called as long as nothing is kept."""
            if instance is None:
                return self
            found = instance.__dict__[self.name] = self.function(instance)
            return found


__all__ = ["cached_property"]
