"""The forms that the inputs of a merge come in, and the form that it gives.

An input's form is declared, or told by the class of its first element; a stream has one form. Inputs are read as
inserts and adjusts, the merge knows nothing else, and what it says is written in the form that was asked for. A stream
of opens and closes has one event of a payload at a time, so payload and start are a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import CheckpointError, ElementError, MergeError
from penstock.model.elements import Adjust, Element, Insert, Punctuation
from penstock.model.form_reading import FormReader, OpenCloseReader, SignedReader
from penstock.model.form_writing import FormWriter, OpenCloseWriter, SignedWriter
from penstock.model.forms import ELEMENTS, FORMS, OPEN_CLOSE, SIGNED, Close, Formed, Open, Signed, time_of
from penstock.model.properties import StreamProperties
from penstock.model.time import END_OF_TIME, MIN_TICK

_OF_CLASS: dict[type, str] = {
    Insert: ELEMENTS, Adjust: ELEMENTS, Open: OPEN_CLOSE, Close: OPEN_CLOSE, Signed: SIGNED,
}  # fmt: skip
NOT_ELEMENTS = frozenset({Open, Close, Signed})
"""The classes of elements of other forms."""
OUTPUT = "the output"
_KEYED = StreamProperties(insert_only=False, key=frozenset({"payload"}), lifetime=None)


class Forms:
    """Reads inputs and writes the output of one merge."""

    def __init__(self, form: object = None, gives: object = None, single_close: bool = False) -> None:
        """`form` is that of every input, or by input; `gives` that of the output, by default the one of every input."""
        self.form, self.single_close = _checked(form), single_close
        self.gives = _one_of(gives) if gives is not None else self.form if isinstance(self.form, str) else ELEMENTS
        if not isinstance(single_close, bool):
            raise MergeError("single_close is true or false.", got=repr(single_close)[:200])
        if single_close and OPEN_CLOSE not in (self.form, self.gives, *_values(self.form)):
            raise MergeError(
                "Only opens have closes.", got="single_close=True", hint=f"form={OPEN_CLOSE!r}, of the inputs"
            )
        self._readers: dict[str, FormReader | None] = {}
        """By input that has spoken, or whose form was declared; None for inserts and adjusts."""
        self.writer = self._writer()
        self.active = form is not None or self.writer is not None
        """Whether anything has to be looked at: as long as only elements come, and elements are given, nothing has."""

    def _writer(self) -> FormWriter | None:
        if self.gives == OPEN_CLOSE:
            return OpenCloseWriter(single_close=self.single_close)
        return SignedWriter() if self.gives == SIGNED else None

    def _reader(self, form: str) -> FormReader | None:
        if form == OPEN_CLOSE:
            return OpenCloseReader(single_close=self.single_close)
        return SignedReader() if form == SIGNED else None

    def declared(self, name: str) -> str | None:
        """The form that was declared for an input."""
        return self.form if isinstance(self.form, str) else (self.form or {}).get(name)

    def promises(self, name: str) -> StreamProperties | None:
        """What an input's form says of it."""
        return _KEYED if self.declared(name) == OPEN_CLOSE else None

    def read(self, name: str, element: Formed) -> list[Element] | str:
        """What an element of an input comes to, or why it cannot be."""
        if name not in self._readers:
            form = self.declared(name) or _OF_CLASS.get(type(element))
            if form is None:  # a bound, or nothing that is an element: it says nothing of the form
                return [element]  # type: ignore[list-item]
            self._readers[name] = self._reader(form)
            self.active = True
        reader = self._readers[name]
        own = ELEMENTS if reader is None else reader.form
        if not isinstance(element, Punctuation) and _OF_CLASS.get(type(element), own) != own:
            return f"not of the input's form, which is {own}"
        if type(element) in NOT_ELEMENTS and not MIN_TICK <= time_of(element) <= END_OF_TIME:  # type: ignore[arg-type]
            return "an event beyond the ends of time"
        return [element] if reader is None else reader.read(element)  # type: ignore[list-item]

    def write(self, said: list[Element]) -> tuple[list[Any], list[tuple[Adjust, str]]]:
        """What the output says, in the form that was asked for, and what that form could not say, with the reason."""
        if self.writer is None:
            return said, []
        try:
            found = self.writer.write(said)
        except ElementError as error:
            raise MergeError(error.what, where=OUTPUT, got=error.got, hint=error.hint) from None
        unsaid, self.writer.unsaid = self.writer.unsaid, []
        return found, unsaid

    def forget(self, name: str) -> None:
        """An input left, or begins again."""
        self._readers.pop(name, None)

    @property
    def held_back(self) -> int:
        """How many events the output's form holds back."""
        return 0 if self.writer is None else self.writer.held_back

    @property
    def size(self) -> int:
        """How many events are kept to read and to write."""
        readers = sum(r.size for r in self._readers.values() if r is not None)
        return readers + (0 if self.writer is None else self.writer.size)

    # State

    def to_plain(self) -> Any:
        """The state as plain data; None while there is none."""
        if not self.active:
            return None
        readers = {n: (ELEMENTS, None) if r is None else (r.form, r.to_plain()) for n, r in self._readers.items()}
        written = None if self.writer is None else self.writer.to_plain()
        return {"gives": self.gives, "single_close": self.single_close, "readers": readers, "written": written}

    def from_plain(self, data: Any) -> Callable[[], None]:
        """Open a state of the same forms; it is taken up when the answer is called."""
        saved = data or {"gives": ELEMENTS, "single_close": False, "readers": {}, "written": None}
        if (saved["gives"], saved["single_close"]) != (self.gives, self.single_close):
            raise CheckpointError(
                "The snapshot is of another merge.",
                got=f"it gives {saved['gives']}{', single closes' if saved['single_close'] else ''}",
                hint="restore it into a merge with the same form",
            )
        readers = {name: self._reader(form) for name, (form, _) in saved["readers"].items()}
        for name, reader in readers.items():
            if reader is not None:
                reader.from_plain(saved["readers"][name][1])
        writer = self._writer()
        if writer is not None:
            writer.from_plain(saved["written"])

        def take_up() -> None:
            self._readers, self.writer = readers, writer
            self.active = self.active or any(r is not None for r in readers.values())

        return take_up


def _values(form: object) -> tuple[str, ...]:
    return tuple(form.values()) if isinstance(form, dict) else ()


def _checked(form: object) -> str | dict[str, str] | None:
    if isinstance(form, Mapping):
        return {str(name): _one_of(each) for name, each in form.items()}
    return None if form is None else _one_of(form)


def _one_of(form: object) -> str:
    if not isinstance(form, str) or form not in FORMS:
        raise MergeError("There is no such form of a stream.", got=repr(form)[:200], hint=f"one of {', '.join(FORMS)}")
    return form
