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
    found: int
    response_predicted: float
    response_found: float


def lengths(rows: int, tell: Callable[[str], None]) -> list[Length]:
    """Three-way joins of all selectivities and costs of a comparison, and joins of more streams."""
    found = []
    for selectivity in SELECTIVITIES:
        for join, factor in JOIN_COSTS.items():
            tell(f"best ring: selectivity {selectivity:g}, {join} images")
            found.append(_length(Setting(selectivity=selectivity), join, costing(factor), rows))
    for streams in WAYS:
        tell(f"best ring: {streams} streams")
        found.append(_length(many(streams), "middle", costing(JOIN_COSTS["middle"]), max(2, rows // 4)))
    return found


def many(streams: int) -> Setting:
    """A join of many streams, a row of each finding two partners in each other one."""
    return Setting(streams, MATCHES / (RATE * WINDOW))


def costing(factor: float) -> Hardware:
    """The machine with comparisons so many times as dear."""
    return replace(MACHINE, join=MACHINE.join * factor)


def _length(setting: Setting, join: str, machine: Hardware, rows: int) -> Length:
    steps = equal_steps(setting.streams, setting.rate, setting.window, setting.selectivity)
    best = best_length(steps, machine)
    tried = sorted({max(1, round(best.nodes * step)) for step in _STEPS} | {best.nodes})
    points = {nodes: play_alone(setting, nodes, rows, machine) for nodes in tried}
    found = min(points, key=lambda nodes: points[nodes].response)
    return Length(
        setting.streams,
        setting.selectivity,
        join,
        best.by_rounds,
        best.by_spread,
        best.nodes,
        found,
        points[best.nodes].response,
        points[found].response,
    )


@dataclass(frozen=True, slots=True)
class Long:
    """A ring of up to 1 000 nodes; `join` says how dear a comparison is."""

    join: str
    nodes: int
    response: float
    model: float


def long_rings(nodes: Sequence[int], rows: int, tell: Callable[[str], None]) -> list[Long]:
    """The three-way join at selectivity 0.5 on rings far beyond the paper's."""
    found = []
    for name, factor in (("0.15 µs", 1.0), ("15 µs", HEAVY)):
        for count in nodes:
            tell(f"a ring of {count} nodes, {name} a comparison")
            point = play_alone(Setting(selectivity=0.5), count, rows, costing(factor))
            found.append(Long(name, count, point.response, point.model))
    return found


def ways(nodes: Sequence[int], rows: int, tell: Callable[[str], None]) -> list[Point]:
    """3, 5, 7 and 9 streams, nobody waiting."""
    found = []
    for streams in WAYS:
        for count in nodes:
            tell(f"{streams} streams on {count} nodes")
            found.append(play_alone(many(streams), count, rows, costing(JOIN_COSTS["middle"])))
    return found
