"""What section 8 of Wang and Rundensteiner 2009 prints, and what it leaves open."""

from __future__ import annotations

import random
from dataclasses import dataclass
from heapq import merge
from itertools import count, pairwise

from weir_lab.ring.hardware import Hardware
from weir_lab.ring.matching import Expected
from weir_lab.ring.stored import Row
from weir_lab.ring.task import Task, cyclic_orders

WINDOW = 10.0
RATE = 50.0
SELECTIVITIES = (0.05, 0.1, 0.5)
NODES = tuple(range(4, 20))
WAYS = (3, 5, 7, 9)
SEGMENTS = (10.0, 20.0, 30.0, 50.0)
COPIES = (2, 3, 5, 7, 9)
COMPARED = 0.1  # the selectivity of figures 8.c to 8.f
# CTR routes by segments; the paper does not say how long they are.
CTR_SEGMENT = 1.0
# With 0.05 a nine-way join would have 25^8 results for each row. Two matches per probe instead.
MATCHES = 2.0

# The paper prints no T_j, T_s or T_n. These let four nodes carry the heaviest setting (150 rows a second at
# selectivity 0.5), and put its best ring, by equation 5, near the paper's 14 nodes. A tuple on the wire is a
# handle of 100 bytes on a gigabit link: images of 15 kB
# and more would ask for 150 times the bandwidth, by equation 6 more than such a link has.
MACHINE = Hardware(
    join=0.15e-6, send=1e-6, hop=40e-6, insert=1e-6, purge=1e-6, bandwidth=125e6, tuple_bytes=100
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A join of so many streams that are all alike."""

    streams: int = 3
    selectivity: float = COMPARED
    rate: float = RATE
    window: float = WINDOW

    @property
    def task(self) -> Task:
        """The join, with expected counts."""
        return Task(
            (self.window,) * self.streams,
            cyclic_orders(self.streams),
            Expected((self.selectivity,) * (self.streams - 1)),
        )


def arrivals(streams: int, rates: list[tuple[float, float]], seed: int) -> list[Row]:
    """Poisson arrivals on each stream; `rates` are (from when, rows a second), the last one the end.

    >>> rows = arrivals(2, [(0.0, 10.0), (1.0, 0.0)], seed=1)
    >>> all(a.time <= b.time for a, b in zip(rows, rows[1:])), rows[-1].time < 1.0
    (True, True)
    """

    def times(stream: int) -> list[tuple[float, int]]:
        rng = random.Random(seed * 1000 + stream)
        arrivals = []
        for (begin, rate), (end, _) in pairwise(rates):
            time = begin + rng.expovariate(rate)
            while time < end:
                arrivals.append((time, stream))
                time += rng.expovariate(rate)
        return arrivals

    numbers = count()
    return [Row(next(numbers), stream, time) for time, stream in merge(*map(times, range(streams)))]
