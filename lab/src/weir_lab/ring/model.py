"""The equations of Wang and Rundensteiner 2009, section 5, that only the simulator is compared with.

Latency and the best length of a ring are in `weir.partition.ring_cost`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from weir.partition.placement import check_nodes
from weir.partition.ring_cost import ProbingSteps
from weir_lab.ring.hardware import Hardware


def equal_steps(streams: int, rate: float, window: float, selectivity: float) -> ProbingSteps:
    """The steps where all streams are alike, as from equation 2 on."""
    return ProbingSteps((rate * window,) * (streams - 1), (selectivity,) * (streams - 1))


def count_results(steps: ProbingSteps) -> float:
    """Results of one input tuple.

    >>> count_results(ProbingSteps((500.0, 500.0), (0.1, 0.1)))
    2500.0
    """
    return steps.probing[-1] * steps.rows[-1] * steps.selectivities[-1]


def central_work(steps: ProbingSteps, hardware: Hardware) -> float:
    """L_C: seconds for one input tuple on one machine (equation 1, counting comparisons)."""
    return hardware.insert + hardware.purge + hardware.join * steps.comparisons


def ring_work(steps: ProbingSteps, hardware: Hardware, nodes: int) -> float:
    """L_PSP: seconds for one input tuple, over all nodes of a ring (equation 1)."""
    return central_work(steps, hardware) + hardware.send * check_nodes(nodes) * steps.travelling


def service_rate(steps: ProbingSteps, hardware: Hardware, nodes: int) -> float:
    """Input tuples a second if each had the ring for L_PSP seconds (equation 3)."""
    return 1 / ring_work(steps, hardware, nodes)


def output_rate(steps: ProbingSteps, hardware: Hardware, nodes: int) -> float:
    """Results a second at most, all nodes busy all the time (equation 4)."""
    return nodes * count_results(steps) * service_rate(steps, hardware, nodes)


def bandwidth_needed(steps: ProbingSteps, hardware: Hardware, nodes: int) -> float:
    """Bytes a second with which sending a tuple hides behind probing with it (equation 6)."""
    shortest = hardware.join * min(steps.rows) / check_nodes(nodes)
    return hardware.tuple_bytes / shortest if shortest else inf


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """One stream of a join: rows a second, seconds of its window, mean selectivity towards the others."""

    rate: float
    window: float
    selectivity: float

    @property
    def rows(self) -> float:
        """Rows in the window."""
        return self.rate * self.window

    @property
    def matches(self) -> float:
        """λ W S: how many tuples come out of a probe of this stream's state."""
        return self.rows * self.selectivity


def uneven_latency(
    order: Sequence[StreamLoad], lengths: Sequence[int], hardware: Hardware, longest: int
) -> float:
    """Equation 5 where each partner's state has a ring length of its own.

    A tuple passes as many nodes as the state that it probes has; the last END passes all, the `longest`.
    """
    steps = ProbingSteps(tuple(load.rows for load in order), tuple(load.selectivity for load in order))
    compared = sum(
        probing * load.rows / length
        for probing, load, length in zip(steps.probing, order, lengths, strict=True)
    )
    at_node = hardware.join * compared + hardware.send * steps.travelling
    return (lengths[0] - 1) / 2 * hardware.hop + max(at_node, (sum(lengths) + longest) * hardware.hop)


def initial_lengths(streams: Mapping[str, StreamLoad], hardware: Hardware, most: int) -> dict[str, int]:
    """A ring length for each stream (section 5.4), streams with few matches first.

    Streams not yet decided take the length that is being tried; each length is the best for the mean over
    all drivers, which probe partners with few matches first.
    """
    check_nodes(most)
    ranked = sorted(streams, key=lambda name: streams[name].matches)
    decided: dict[str, int] = {}
    for name in ranked:

        def mean_latency(length: int, name: str = name) -> float:
            tried = {stream: decided.get(stream, length) for stream in ranked} | {name: length}
            return sum(
                streams[driver].rate * _driver_latency(driver, streams, ranked, tried, hardware)
                for driver in ranked
            )

        decided[name] = min(range(1, most + 1), key=mean_latency)
    return {name: decided[name] for name in streams}


def _driver_latency(
    driver: str,
    streams: Mapping[str, StreamLoad],
    ranked: Sequence[str],
    lengths: Mapping[str, int],
    hardware: Hardware,
) -> float:
    order = [name for name in ranked if name != driver]
    longest = max(lengths.values())
    return uneven_latency([streams[n] for n in order], [lengths[n] for n in order], hardware, longest)
