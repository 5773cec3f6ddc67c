"""Count the results of a ring and their response times."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from weir_lab.ring.matching import Matching
from weir_lab.ring.stored import Row


class Tally:
    """Counts results and their delays; `outputs` keeps what they carry if asked to."""

    __slots__ = ("_keep", "_matching", "delays", "outputs", "results")

    def __init__(self, matching: Matching, keep: bool = False) -> None:
        self._matching, self._keep = matching, keep
        # By the second in which the row came that completed them.
        self.results: dict[int, float] = defaultdict(float)
        self.delays: dict[int, float] = defaultdict(float)
        self.outputs: list[Any] = []

    def emit(self, row: Row, content: Any, begin: float, done: float) -> None:
        """Take the results of a probe, found evenly between its begin and its end."""
        size = self._matching.size(content)
        second = int(row.time)
        self.results[second] += size
        self.delays[second] += size * ((begin + done) / 2 - row.time)
        if self._keep:
            self.outputs += content

    @property
    def total(self) -> float:
        """All results."""
        return sum(self.results.values())

    def mean(self, second: int) -> float:
        """The response of results completed by rows of one second; nan without any."""
        return self.delays[second] / self.results[second] if self.results[second] else float("nan")

    @property
    def response(self) -> float:
        """Seconds from a row's arrival to its results, on average over results; nan without any."""
        return sum(self.delays.values()) / self.total if self.total else float("nan")
