"""How long the best ring is: by equation 5, and by trying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from weir.partition.ring_cost import best_length
from weir_lab.psp.play import Point, play_alone
from weir_lab.psp.settings import MACHINE, MATCHES, RATE, SELECTIVITIES, WAYS, WINDOW, Setting
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.model import equal_steps

# How dear a comparison is beside `MACHINE`: images of 5, 10 and 20 thousand pixels, as in the paper; and one
# of 15 µs, about what comparing 5 thousand pixels takes, which no ring of 20 nodes could carry.
JOIN_COSTS = {"small": 1.0, "middle": 2.0, "large": 4.0}
HEAVY = 100.0
HUNDREDS = (1, 2, 5, 10, 20, 50, 100, 150, 200, 300, 500, 1000)
_STEPS = (0.4, 0.55, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.8, 2.2)


@dataclass(frozen=True, slots=True)
class Length:
    """The best ring of one setting: predicted, with both bounds, and found, with what each takes."""

    streams: int
    selectivity: float
    join: str
    by_rounds: float
    by_spread: float
    predicted: int
    best: int
    response_predicted: float
    response_best: float


def find_best_lengths(rows: int, tell: Callable[[str], None]) -> list[Length]:
    """Three-way joins of all selectivities and costs of a comparison, and joins of more streams."""
    measured = []
    for selectivity in SELECTIVITIES:
        for join, factor in JOIN_COSTS.items():
            tell(f"best ring: selectivity {selectivity:g}, {join} images")
            measured.append(_length(Setting(selectivity=selectivity), join, with_join_cost(factor), rows))
    for streams in WAYS:
        tell(f"best ring: {streams} streams")
        measured.append(
            _length(with_streams(streams), "middle", with_join_cost(JOIN_COSTS["middle"]), max(2, rows // 4))
        )
    return measured


def with_streams(streams: int) -> Setting:
    """A join of many streams, a row of each finding two partners in each other one."""
    return Setting(streams, MATCHES / (RATE * WINDOW))


def with_join_cost(factor: float) -> Hardware:
    """The machine with comparisons so many times as dear."""
    return replace(MACHINE, join=MACHINE.join * factor)


def _length(setting: Setting, join: str, machine: Hardware, rows: int) -> Length:
    steps = equal_steps(setting.streams, setting.rate, setting.window, setting.selectivity)
    predicted = best_length(steps, machine)
    tried = sorted({max(1, round(predicted.nodes * step)) for step in _STEPS} | {predicted.nodes})
    points = {nodes: play_alone(setting, nodes, rows, machine) for nodes in tried}
    best = min(points, key=lambda nodes: points[nodes].response)
    return Length(
        setting.streams,
        setting.selectivity,
        join,
        predicted.by_rounds,
        predicted.by_spread,
        predicted.nodes,
        best,
        points[predicted.nodes].response,
        points[best].response,
    )


@dataclass(frozen=True, slots=True)
class Long:
    """A ring of up to 1 000 nodes; `join` says how dear a comparison is."""

    join: str
    nodes: int
    response: float
    model: float


def play_long_rings(nodes: Sequence[int], rows: int, tell: Callable[[str], None]) -> list[Long]:
    """The three-way join at selectivity 0.5 on rings far beyond the paper's."""
    rings = []
    for name, factor in (("0.15 µs", 1.0), ("15 µs", HEAVY)):
        for count in nodes:
            tell(f"a ring of {count} nodes, {name} a comparison")
            point = play_alone(Setting(selectivity=0.5), count, rows, with_join_cost(factor))
            rings.append(Long(name, count, point.response, point.model))
    return rings


def play_many_ways(nodes: Sequence[int], rows: int, tell: Callable[[str], None]) -> list[Point]:
    """3, 5, 7 and 9 streams, nobody waiting."""
    points = []
    for streams in WAYS:
        for count in nodes:
            tell(f"{streams} streams on {count} nodes")
            points.append(
                play_alone(with_streams(streams), count, rows, with_join_cost(JOIN_COSTS["middle"]))
            )
    return points
