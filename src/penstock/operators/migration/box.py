"""A box: a plan as one operator, into which nobody looks (GenMig, section 3).

What enters at a port goes to every node that reads it, and what a node gives goes to the node above it at once, down to
the last thing that comes of it: one box runs in one thread, depth-first. Its pages are those of its operators under
their numbers, so that a box can be kept and gone on with like any operator, and is forgotten by deleting its pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.interleaved import Interleaved
from penstock.operators.operator import Operator, Output, Outputs, Rejected
from penstock.operators.state import Pages, open_page, plain_page


@dataclass(frozen=True)
class Node:
    """An operator, and what feeds each of its ports: another node, or a port of the box."""

    operator: Operator
    inputs: tuple[Node | int, ...]


class Part:
    """Those of some pages whose keys begin alike."""

    def __init__(self, pages: Pages, prefix: str) -> None:
        """Keys are put behind the prefix."""
        self.pages, self.prefix = pages, prefix

    def get(self, key: str) -> Any:
        """The page, or None."""
        return self.pages.get(self.prefix + key)

    def put(self, key: str, page: Any) -> None:
        """Keep a page."""
        self.pages.put(self.prefix + key, page)

    def put_new(self, key: str, page: Any) -> None:
        """Keep a page under a key that has none."""
        self.pages.put_new(self.prefix + key, page)

    def delete(self, key: str) -> None:
        """Forget a page."""
        self.pages.delete(self.prefix + key)

    def keys(self) -> Iterator[str]:
        """The keys, without what they begin with."""
        size = len(self.prefix)
        return (key[size:] for key in self.pages.keys() if key.startswith(self.prefix))  # noqa: SIM118 - no mapping

    def clear(self) -> None:
        """Forget all of them."""
        for key in list(self.keys()):
            self.delete(key)


class Box(Operator):
    """A tree of operators."""

    kind = "box"

    def __init__(self, root: Node | int, ports: int, operator: Operator | None = None) -> None:
        """`root` gives the output; of a box that gives its only input as it is, `operator` says with what schema."""
        if isinstance(root, int):
            assert operator is not None, "a port alone has no schema"
            root = Node(operator, (root,))
        super().__init__(root.operator.schema)
        self.root, self.ports = root, ports
        self.nodes: list[Node] = []
        self.above: list[tuple[int, int] | None] = []
        """Which node reads each node, and at which of its ports."""
        self.readers: list[list[tuple[int, int]]] = [[] for _ in range(ports)]
        """Which nodes read each port of the box."""
        self._number(root, None)
        self.attach(self.pages)

    def _number(self, node: Node, above: tuple[int, int] | None) -> None:
        number = len(self.nodes)
        self.nodes.append(node)
        self.above.append(above)
        for port, below in enumerate(node.inputs):
            if isinstance(below, int):
                self.readers[below].append((number, port))
            else:
                self._number(below, (number, port))

    def attach(self, pages: Pages) -> None:
        """Every operator has its part of them."""
        super().attach(pages)
        for number, node in enumerate(self.nodes):
            node.operator.attach(Part(pages, f"{number}/"))

    def process(self, port: int, batch: Batch) -> Outputs:
        """All that comes of it."""
        return self._entered(port, batch)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """All that comes of it."""
        return self._entered(port, punctuation)

    def _entered(self, port: int, element: Batch | Punctuation) -> Outputs:
        for number, at in self.readers[port]:
            yield from self._taken(number, at, element)

    def _taken(self, number: int, port: int, element: Output) -> Outputs:
        above = self.above[number]
        for output in taken(self.nodes[number].operator, port, element):
            if above is None or isinstance(output, Rejected):
                yield output
            else:
                yield from self._taken(*above, output)

    def operators(self) -> Sequence[Operator]:
        """Those of all nodes."""
        return [node.operator for node in self.nodes]

    def to_plain(self, key: str, page: Any) -> Any:
        """As its operator does, with the kind and version of that one."""
        number, own = key.split("/", 1)
        operator = self.nodes[int(number)].operator
        return [operator.kind, operator.version, plain_page(operator, own, page, self.kind)]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        number, own = key.split("/", 1)
        kind, of_operator, plain = data
        return open_page(self.nodes[int(number)].operator, own, kind, of_operator, plain, where=self.kind)


def taken(operator: Operator, port: int, element: Output) -> Outputs:
    """What an operator makes of whatever is given to it."""
    if isinstance(element, Batch):
        return operator.process(port, element) if len(element) else ()
    if isinstance(element, Punctuation):
        return operator.punctuate(port, element)
    if isinstance(element, Interleaved):
        return operator.interleave(port, element)
    return [element]
