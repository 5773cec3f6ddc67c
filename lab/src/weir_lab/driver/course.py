"""The course of a batch: how many results are there after how much time or work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from weir_lab.driver.settings import WARM

# Moments at which a batch's results are counted.
MARKS = 40


@dataclass(frozen=True, slots=True)
class Course:
    """The results that were there once so much had been spent: seconds of the processor, or counted work.

    >>> Course(((2.0, 10), (4.0, 40))).share(3.0)
    0.625
    """

    marks: tuple[tuple[float, int], ...]

    @property
    def spent(self) -> float:
        """What the whole batch took."""
        return self.marks[-1][0] if self.marks else 0.0

    @property
    def results(self) -> int:
        """All of them."""
        return self.marks[-1][1] if self.marks else 0

    @property
    def moment(self) -> float:
        """When a result is there on average, as a part of what the whole batch took."""
        before, late = 0, 0.0
        for at, results in self.marks:
            late += at * (results - before)
            before = results
        return late / (self.results * self.spent) if self.results else 1.0

    def share(self, spent: float) -> float:
        """The share of the results that are there by then; a straight line between two marks."""
        before = (0.0, 0)
        for mark in self.marks:
            if mark[0] >= spent:
                width = mark[0] - before[0]
                part = (spent - before[0]) / width if width else 1.0
                return (before[1] + part * (mark[1] - before[1])) / self.results
            before = mark
        return 1.0


def warm_batches(courses: Sequence[object], since: float = WARM, until: float = 1.0) -> range:
    """The batches from one part of the run to another, as the paper averages them."""
    return range(round(since * len(courses)), round(until * len(courses)))


def mean_time_ratio(courses: Sequence[Course], beside: Sequence[Course]) -> float:
    """Mean time ratio of the warm batches to those of `beside` (Valsomatzis and Gounaris 2013, table 4)."""
    return mean(courses[i].spent / beside[i].spent for i in warm_batches(courses) if beside[i].spent)


def mean_early_share(
    courses: Sequence[Course],
    beside: Sequence[Course],
    at: float = 0.5,
    since: float = WARM,
    until: float = 1.0,
) -> float:
    """Share of results after `at` of the time of `beside` (Valsomatzis and Gounaris 2013, table 5)."""
    shares = [
        courses[i].share(at * beside[i].spent)
        for i in warm_batches(courses, since, until)
        if courses[i].results
    ]
    return mean(shares) if shares else 0.0
