"""Every error Penstock raises on purpose.

One root, `PenstockError`, so that a caller can catch the lot. A message has up to four parts: what happened, where
(stream, operator, line and column of the SQL), what was got, and what to do about it.
"""

from __future__ import annotations


class PenstockError(Exception):
    """The root of all errors raised by Penstock."""

    def __init__(self, what: str, *, where: str = "", got: str = "", hint: str = "") -> None:
        """Compose the message from its parts; empty parts are left out."""
        self.what, self.where, self.got, self.hint = what, where, got, hint
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The whole text, one part a line; what was got may hold what UTF-8 cannot, and stands there escaped."""
        parts = [str(self.what)]
        if self.where:
            parts.append(f"  where: {self.where}")
        if self.got:
            parts.append(f"  got:   {self.got}")
        if self.hint:
            parts.append(f"  try:   {self.hint}")
        text = "\n".join(parts)
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by parts, so that an error raised in a worker process arrives whole."""
        return (_rebuild, (type(self), self.what, self.where, self.got, self.hint))


def _rebuild(cls: type[PenstockError], what: str, where: str, got: str, hint: str) -> PenstockError:
    error = cls.__new__(cls)
    PenstockError.__init__(error, what, where=where, got=got, hint=hint)
    return error


LONGEST_LINE = 160
"""So much of a line is shown; of a longer one what is around the place."""


def _around(line: str, at: int) -> tuple[str, int]:
    """A line, or the part of it around a place, and where the place is in that."""
    start = min(max(at - LONGEST_LINE // 2, 0), max(len(line) - LONGEST_LINE, 0))
    before, after = "…" if start else "", "…" if start + LONGEST_LINE < len(line) else ""
    return f"{before}{line[start : start + LONGEST_LINE]}{after}", at - start + len(before)


class QueryError(PenstockError):
    """The SQL is wrong: it does not parse, or names what does not exist, or asks for what has no meaning."""

    def __init__(
        self, what: str, *, sql: str = "", line: int = 0, column: int = 0, got: str = "", hint: str = ""
    ) -> None:
        """Point at `line` and `column` (both from 1) of `sql`, and show that line with a caret."""
        where = ""
        if line:
            where = f"line {line}, column {column}"
            lines = sql.splitlines()
            if 0 < line <= len(lines):
                shown, at = _around(lines[line - 1], max(column - 1, 0))
                margin = " " * 9
                where += f"\n{margin}{shown}\n{margin}{' ' * at}^"
        self.line, self.column = line, column
        super().__init__(what, where=where, got=got, hint=hint)


class PlanError(PenstockError):
    """A plan is put together wrong: a node does not fit its inputs, or they do not agree."""


class StreamError(PenstockError):
    """A stream is declared wrong: an unknown column, a time of the wrong type, a progress that cannot be."""


class UnsupportedError(PenstockError):
    """An engine cannot do what the query asks. Raised before anything runs."""


class EvaluationError(PenstockError):
    """An expression has no value under ANSI rules: overflow, division by zero, a cast that fails."""


class Failure(EvaluationError):
    """A failure of which only the reason is left, kept until the result that it spoils is due."""


class CheckpointError(PenstockError):
    """Saved state cannot be used: another format version, or another query."""


class ElementError(PenstockError):
    """Elements contradict one another: an adjust without its event, a lifetime that ends before its start."""


class MergeError(PenstockError):
    """A merge was asked for something that its inputs do not allow."""


class DivergenceError(MergeError):
    """Inputs of a merge are not replicas of one stream, and the merge was to stop at that."""


class SourceError(PenstockError):
    """A source cannot be read."""


class StorageError(PenstockError):
    """A place cannot be used: it is unknown, damaged, refuses, or belongs to another run."""


class StorageWarning(UserWarning):
    """What was written is not all there any more; nothing is stopped by it."""


class LeaseError(StorageError):
    """Another driver holds the place, or has taken it over."""


class RunError(PenstockError):
    """A running query has failed; `stack` is all that its host says about it."""

    def __init__(self, what: str, *, where: str = "", got: str = "", hint: str = "", stack: str = "") -> None:
        """The reason first."""
        self.stack = stack
        super().__init__(what, where=where, got=got, hint=hint)


class DeadLetterError(PenstockError):
    """More rows are dead than `max_dead` allows. What was counted and kept up to here stays."""


class InternalError(PenstockError):
    """Penstock contradicts itself: rows that were read are in no count, or in two. Please report it."""


def _text(error: BaseException) -> str:
    """What an error says; not every one of a user's own can say it."""
    try:
        return str(error)
    except Exception as inner:
        return f"its text cannot be made ({type(inner).__name__})"


def reason_of(error: BaseException) -> str:
    """An error on one line, as the reason of a dead letter: what, where, and after a colon what was got."""
    if isinstance(error, Failure):
        return error.what
    if not isinstance(error, PenstockError):
        return " ".join(f"{type(error).__name__}: {_text(error)}".split())
    where = f" ({error.where})" if error.where else ""
    got = f": {error.got}" if error.got else ""
    return " ".join(f"{error.what.rstrip('.')}{where}{got}".split())
