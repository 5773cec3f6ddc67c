"""Figures 8.a to 8.f: rings, aligned and coordinated routing over 4 to 19 nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weir_lab.psp.play import Point, play_atr, play_ctr, play_ring
from weir_lab.psp.settings import SELECTIVITIES, Setting

INTERLEAVED = 4


def play_rings(nodes: Sequence[int], seconds: float, tell: Callable[[str], None]) -> list[Point]:
    """Figures 8.a and 8.b, one tuple at a time and interleaved."""
    points = []
    for selectivity in SELECTIVITIES:
        for count in nodes:
            tell(f"figure 8.a: selectivity {selectivity:g} on {count} nodes")
            for interleave in (1, INTERLEAVED):
                points.append(play_ring(Setting(selectivity=selectivity), count, seconds, interleave))
    return points


def play_aligned(
    nodes: Sequence[int], segments: Sequence[float], seconds: float, tell: Callable[[str], None]
) -> list[Point]:
    """Figures 8.c and 8.d."""
    points = []
    for segment in segments:
        for count in nodes:
            tell(f"figure 8.c: segments of {segment:g} seconds on {count} nodes")
            points.append(play_atr(Setting(), count, segment, seconds))
    return points


def play_coordinated(
    nodes: Sequence[int], copies: Sequence[int], seconds: float, tell: Callable[[str], None]
) -> list[Point]:
    """Figures 8.e and 8.f; as in the paper, at least twice as many nodes as copies."""
    points = []
    for number in copies:
        for count in (length for length in nodes if length >= 2 * number):
            tell(f"figure 8.e: {number} copies on {count} nodes")
            points.append(play_ctr(Setting(), count, number, seconds))
    return points
