"""A wire from one node to another: first in, first out."""

from __future__ import annotations

from typing import Any

from weir_lab.ring.clock import Clock
from weir_lab.ring.node import Node


class Link:
    """Carries messages one after the other, each as long as its tuples take, then the latency of the hop."""

    __slots__ = ("carried", "clock", "free", "hop", "to", "wire")

    def __init__(self, clock: Clock, to: Node, hop: float, wire: float) -> None:
        self.clock, self.to, self.hop, self.wire = clock, to, hop, wire
        self.free = self.carried = 0.0

    def send(self, when: float, message: Any, tuples: float) -> None:
        """Put a message on the wire at a time."""
        self.carried += tuples
        begin = self.free if self.free > when else when
        self.free = begin + tuples * self.wire
        self.clock.at(self.free + self.hop, self.to.receive, message)
