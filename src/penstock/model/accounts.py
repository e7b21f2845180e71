"""Where the rows of the input went, and the law that none is missing.

read = on time + late + dead + punctuation + skipped. Each is counted where it happens, `read` where the rows come in
and the others where they are judged, so that the law can fail; if it does, that is an error of Penstock's own and is
said at once. Rows that were on time and of which an operator then made a dead letter are counted as `failed` besides;
one row may fail in several operators of a plan, and for an aggregate it is not a row that fails but a group's window.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from penstock.errors import DeadLetterError, InternalError, StreamError


@dataclass
class Counts:
    """Where the rows of the input went; `read` is the sum of the five that follow."""

    read: int = 0
    on_time: int = 0
    late: int = 0
    dead: int = 0
    """Refused at the entrance: unreadable, without a time, contradictory."""
    punctuation: int = 0
    skipped: int = 0
    """Rows in time that nobody needed, by the consumer's own word."""
    failed: int = 0
    """Dead letters of operators: the rows were on time."""

    def __add__(self, other: Counts) -> Counts:
        """Both together."""
        mine, theirs = asdict(self), asdict(other)
        return Counts(**{name: mine[name] + theirs[name] for name in mine})

    @property
    def unaccounted(self) -> int:
        """How many rows were read and are in no count; negative where some are in two."""
        return self.read - (self.on_time + self.late + self.dead + self.punctuation + self.skipped)

    @property
    def letters(self) -> int:
        """How many dead letters there are."""
        return self.dead + self.failed

    def check(self, where: str) -> None:
        """The law."""
        if self.unaccounted:
            raise InternalError(
                "Rows that were read are unaccounted for.",
                where=where,
                got=f"{self.unaccounted} of {self.read} rows: {asdict(self)}",
                hint="this is an error in Penstock: please report it with the query and its progress",
            )


FRACTION_FROM = 1000
"""A fraction of dead rows is judged from so many rows on, and at the end."""


@dataclass(frozen=True)
class DeadLimit:
    """How many dead letters a run bears: a number, or a fraction of the rows read."""

    limit: int | float | None = None

    def __post_init__(self) -> None:
        """A number that is not negative, or a fraction below 1."""
        limit = self.limit
        if limit is None:
            return
        is_number = isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0
        if not (is_number or (isinstance(limit, float) and 0 <= limit < 1)):
            raise StreamError(
                "max_dead must be a number of rows or a fraction of them.",
                got=repr(limit),
                hint="max_dead=1000, or max_dead=0.01 for one row in a hundred",
            )

    def check(self, counts: Counts, where: str, last: str = "", *, at_end: bool = False) -> None:
        """Stop a run that has gone bad."""
        limit = self.limit
        if limit is None:
            return
        if isinstance(limit, float):
            if counts.letters <= limit * counts.read or (counts.read < FRACTION_FROM and not at_end):
                return
        elif counts.letters <= limit:
            return
        raise DeadLetterError(
            "There are more dead letters than max_dead allows.",
            where=where,
            got=f"{counts.letters} dead letters in {counts.read} rows, max_dead={limit}"
            + (f"; {last}" if last else ""),
            hint="look at dead_letters, which are kept; mend the input or the query, or allow more",
        )
