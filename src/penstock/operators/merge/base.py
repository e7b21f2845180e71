"""What every merge has: inputs that come and go, and elements that are taken one at a time.

An input that attaches late names a time from which it is complete: it brings every event that ends at or after it. It
*joins* when everything before that time has been decided in the output (`decided_to`); until then it does not drive the
output, since what it has not seen would be taken for removed. One rule for every algorithm and every lag. An input that
leaves is forgotten. As long as one joined input is left the output goes on, and whoever drives it is asked anew
whenever an input comes, goes, begins again or ends; what that makes the output say is the answer of the call. One that
ends without having brought anything does not drive while there is another, so it is the same whether an empty replica
is read first or last.

An element that contradicts what its own input said before (a bound that goes back, an insert below it, an adjust of an
event that is not there), or that the algorithm's streams do not allow (disorder, a repeat), is put aside with the
reason, and counts nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.errors import MergeError
from penstock.model.elements import Adjust, Element, Insert, Payload, Punctuation, is_whole, linear
from penstock.model.time import END_OF_TIME, MIN_TICK


@dataclass(frozen=True)
class Misstep:
    """An element that its own input contradicts, or that a stream of its kind may not have."""

    input: str
    element: Element
    reason: str


@dataclass
class Input:
    """One input: how far it has come, and from when on it is complete."""

    name: str
    number: int
    complete_from: int = MIN_TICK
    joined: bool = True
    stable: int = MIN_TICK
    greatest: int = MIN_TICK
    """The greatest start of its inserts."""
    least: int = MIN_TICK
    """Where the stream is ordered: the least start that it may still bring."""
    unfrozen: int = 0
    """How many of its events the output has not passed."""
    held: list[Insert] = field(default_factory=list)
    """What it brought before it joined, where that must wait."""
    tie_start: int = MIN_TICK
    ties: int = 0
    """How many inserts it has brought of the start that it brought last; below zero once its starts went back."""
    excused_to: int = MIN_TICK
    """What ends before this it was told to skip."""
    bit: int = 0
    """Its place in a set of inputs."""
    spoke: bool = True
    """Whether it has brought an event; of one from an old page that is not known, and taken for granted."""

    def __post_init__(self) -> None:
        """The bit follows from the number; nothing has been said yet."""
        self.bit, self.spoke = 1 << self.number, False

    @property
    def mute(self) -> bool:
        """Whether it has ended and brought nothing."""
        return self.stable == END_OF_TIME and not self.spoke

    @property
    def accountable_from(self) -> int:
        """What ends before this it need not have."""
        return max(self.complete_from, self.excused_to)


@dataclass
class MergeCounts:
    """What went in and came out; adjusts that come out are the chattiness of the merge."""

    inserts_in: int = 0
    adjusts_in: int = 0
    inserts_out: int = 0
    adjusts_out: int = 0
    removals_out: int = 0
    waited: int = 0
    """Over all events that came out: how many elements were taken between the first sight of one and its output."""
    missteps: int = 0
    """Elements that were put aside."""

    @property
    def taken(self) -> int:
        """Inserts and adjusts that went in."""
        return self.inserts_in + self.adjusts_in


def _check_from(complete_from: object) -> None:
    if not is_whole(complete_from):
        raise MergeError(
            "An input is complete from a time on.", got=repr(complete_from)[:200], hint="an integer, in ticks"
        )


class LogicalMerge(ABC):
    """A merge of replicas; `attribute` names the time attribute in the punctuation that comes out."""

    name = ""

    def __init__(self, inputs: Iterable[str] = (), *, attribute: str = "vs", width: int | None = None) -> None:
        """`width` is the number of values in a payload, if it is to be checked."""
        self.attribute, self.width = attribute, width
        self.inputs: dict[str, Input] = {}
        self.missteps: list[Misstep] = []
        self.counts = MergeCounts()
        self.stable = MIN_TICK
        """The bound that the output has reached."""
        self.max_stable = MIN_TICK
        """The bound that a joined input has reached; the output may lag behind it."""
        self.out: list[Element] = []
        self.unjoined = 0
        """How many inputs have not joined."""
        for each in inputs:
            self.attach(each)

    # Inputs

    def attach(self, name: str, complete_from: int = MIN_TICK) -> list[Element]:
        """A new input, complete from a time on; without one, it brings the stream from its beginning."""
        if not isinstance(name, str):
            raise MergeError("The name of an input is a text.", got=repr(name)[:200])
        if name in self.inputs:
            raise MergeError("There is an input of that name.", got=name, hint="detach it first, or restart it")
        _check_from(complete_from)
        used = {i.number for i in self.inputs.values()}
        number = next(n for n in range(len(used) + 1) if n not in used)
        self.inputs[name] = Input(name, number, complete_from, self._has_joined(complete_from))
        return self._changed()

    def detach(self, name: str) -> list[Element]:
        """An input leaves; the last one cannot, since nothing would drive the output."""
        leaving = self.input_of(name)
        if len(self.inputs) == 1:
            raise MergeError("The last input cannot be detached.", got=name, hint="attach another one first")
        self._check_others(leaving, "wait until the output has reached {}")
        del self.inputs[name]
        self.forget(leaving)
        return self._changed()

    def restart(self, name: str, complete_from: int = MIN_TICK) -> list[Element]:
        """An input begins again, from its beginning or from a time on; what it said before no longer binds it."""
        old = self.input_of(name)
        _check_from(complete_from)
        joined = self._has_joined(complete_from)
        if not joined:
            self._check_others(old, "let it begin again from an earlier time")
        self.forget(old)
        old.complete_from, old.joined = complete_from, joined
        old.stable = old.greatest = old.least = old.tie_start = old.excused_to = MIN_TICK
        old.unfrozen = old.ties = 0
        old.spoke = False
        old.held.clear()
        return self._changed()

    def _changed(self) -> list[Element]:
        self.unjoined = sum(not i.joined for i in self.inputs.values())
        self.membership_changed()
        return self._flush()

    def _check_others(self, leaving: Input, hint: str) -> None:
        """Somebody who has joined must be left."""
        rest = [i for i in self.inputs.values() if i is not leaving]
        if leaving.joined and not any(i.joined for i in rest):
            first = min((i.complete_from for i in rest), default=None)
            raise MergeError(
                "No other input has joined yet: what they have not seen would be lost.",
                got=leaving.name,
                hint=hint.format(first),
            )

    def input_of(self, name: str) -> Input:
        """The input of a name."""
        if not isinstance(name, str) or name not in self.inputs:
            raise MergeError(
                "There is no such input.", got=str(name)[:200], hint=f"the inputs are {', '.join(self.inputs)}"
            )
        return self.inputs[name]

    @property
    def decided_to(self) -> int:
        """Whatever ends before this can no longer change in the output."""
        return self.max_stable

    def _has_joined(self, complete_from: int) -> bool:
        return complete_from == MIN_TICK or self.decided_to >= complete_from

    def _join(self) -> list[Input]:
        """Inputs whose time the output has reached may drive it from now on; those that now do."""
        if not self.unjoined:
            return []
        reached = self.decided_to
        joining = [i for i in self.inputs.values() if not i.joined and reached >= i.complete_from]
        for each in joining:
            each.joined = True
        self.unjoined -= len(joining)
        return joining

    def heard(self) -> list[Input]:
        """The inputs that may drive: those that have joined, without those that ended and brought nothing.

        That a replica is empty while another one is not says more of the replica than of the stream. Only where every
        joined input is empty, the stream is.
        """
        joined = [i for i in self.inputs.values() if i.joined]
        return [i for i in joined if not i.mute] or joined

    def behind(self) -> dict[str, int]:
        """Feedback: for each input that is behind the output, the time before which what ends is no longer needed.

        An input that has been told may skip it; it is not missed.
        """
        told = {each.name: self.stable for each in self.inputs.values() if each.stable < self.stable}
        for name in told:
            self.excuse(name)
        return told

    def excuse(self, name: str) -> None:
        """An input has been told to skip what ends before the output's bound."""
        each = self.input_of(name)
        each.excused_to = max(each.excused_to, self.stable)

    # Elements

    def push(self, name: str, element: Element) -> list[Element]:
        """Take an element of an input; what the output is to say."""
        each = self.inputs.get(name) or self.input_of(name)
        kind = type(element)
        aside = self.counts.missteps
        if kind is Insert:
            payload, vs = element.payload, element.vs  # type: ignore[union-attr]
            if vs < each.stable:
                self.reject(each, element, f"an insert at {vs}, below the input's own bound {each.stable}")
            elif self.width is not None and len(payload) != self.width:
                self.reject(each, element, f"a payload of {len(payload)} values where {self.width} were expected")
            else:
                self.counts.inserts_in += 1
                each.spoke = True
                self.insert(each, element)  # type: ignore[arg-type]
                self.counts.inserts_in -= self.counts.missteps - aside
        elif kind is Adjust:
            if element.lateness_time < each.stable:  # type: ignore[union-attr]
                self.reject(each, element, f"an adjust below the input's own bound {each.stable}")
            else:
                self.counts.adjusts_in += 1
                self.adjust(each, element)  # type: ignore[arg-type]
                self.counts.adjusts_in -= self.counts.missteps - aside
        elif isinstance(element, Punctuation) and element.is_linear:
            self._take_bound(each, element)
        elif not isinstance(element, Punctuation):
            self.reject(each, element, "not an element")
        return self._flush() if self.out else []

    def _flush(self) -> list[Element]:
        """What was said since the last time; the list is the caller's."""
        out, self.out = self.out, []
        return out

    def _take_bound(self, each: Input, element: Punctuation) -> None:
        bound = element.value
        if bound < each.stable:
            self.reject(each, element, f"a bound of {bound} after one of {each.stable}")
            return
        each.stable = bound
        self.bound(each, bound)

    def reject(self, each: Input, element: Element, reason: str) -> None:
        """Put an element aside."""
        self.counts.missteps += 1
        self.missteps.append(Misstep(each.name, element, reason))

    # What an algorithm does

    @abstractmethod
    def insert(self, each: Input, element: Insert) -> None:
        """An event comes."""

    @abstractmethod
    def adjust(self, each: Input, element: Adjust) -> None:
        """An event's end moves."""

    @abstractmethod
    def bound(self, each: Input, bound: int) -> None:
        """An input says how far it has come."""

    @abstractmethod
    def forget(self, each: Input) -> None:
        """An input has left or begins again."""

    @abstractmethod
    def membership_changed(self) -> None:
        """An input came, left or began again: ask anew who drives the output, and how far."""

    # Output

    def emit_insert(self, element: Insert) -> None:
        """Put an event out."""
        self.counts.inserts_out += 1
        self.out.append(element)

    def emit_adjust(self, payload: Payload, vs: int, v_old: int, ve: int) -> None:
        """Move the end of an event that was put out, or take it back."""
        self.counts.adjusts_out += 1
        self.counts.removals_out += ve == vs
        self.out.append(Adjust(payload, vs, v_old, ve))

    def emit_bound(self, bound: int) -> None:
        """Say how far the output has come, if it is further than before."""
        if bound > self.stable:
            self.stable = bound
            self.out.append(linear(self.attribute, bound))

    def held_back(self) -> int:
        """How many events have come and wait for a bound to come out; none, where whatever comes first is put out."""
        return 0

    @property
    def ended(self) -> bool:
        """Whether the output has said its last."""
        return self.stable == END_OF_TIME
