"""What a ring costs, by formula (Wang and Rundensteiner 2009, section 5).

Equation 1 as printed multiplies a selectivity into the last probing step too, so that it counts the results
of each step instead of its comparisons. Equation 2 does not follow from that: the transmission term would be
1 / selectivity times larger. It follows, up to the one insert and purge of each tuple, if the first step
compares λ W pairs and each further step that many for every match so far, which is what is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import floor, inf, sqrt
from operator import mul

from weir.errors import QueryError
from weir.partition.hardware import Hardware, check_nodes


@dataclass(frozen=True, slots=True)
class Steps:
    """The probing steps of one input tuple: rows in each partner's window (λ W), and selectivities.

    >>> steps = Steps((500.0, 500.0), (0.1, 0.1))
    >>> steps.comparisons, steps.travelling, steps.results
    (25500.0, 51.0, 2500.0)
    """

    rows: tuple[float, ...]
    selectivities: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.rows or len(self.rows) != len(self.selectivities):
            raise QueryError(
                "a join needs at least two streams, and one selectivity for each partner; "
                f"got {len(self.rows)} partners and {len(self.selectivities)} selectivities"
            )

    @property
    def streams(self) -> int:
        """M: the partners and the stream of the tuple itself."""
        return len(self.rows) + 1

    @property
    def probing(self) -> tuple[float, ...]:
        """How many tuples probe at each step: the input tuple, then the matches so far."""
        matches = (rows * share for rows, share in zip(self.rows, self.selectivities, strict=True))
        return tuple(accumulate(matches, mul, initial=1.0))[:-1]

    @property
    def comparisons(self) -> float:
        """Pairs compared for one input tuple."""
        return sum(probing * rows for probing, rows in zip(self.probing, self.rows, strict=True))

    @property
    def travelling(self) -> float:
        """Tuples that go around the ring for one input tuple, itself included."""
        return sum(self.probing)

    @property
    def results(self) -> float:
        """Results of one input tuple."""
        return self.probing[-1] * self.rows[-1] * self.selectivities[-1]


def equal_steps(streams: int, rate: float, window: float, selectivity: float) -> Steps:
    """The steps where all streams are alike, as from equation 2 on."""
    return Steps((rate * window,) * (streams - 1), (selectivity,) * (streams - 1))


def central_work(steps: Steps, hardware: Hardware) -> float:
    """L_C: seconds for one input tuple on one machine (eq. 1, counting comparisons)."""
    return hardware.insert + hardware.purge + hardware.join * steps.comparisons


def ring_work(steps: Steps, hardware: Hardware, nodes: int) -> float:
    """L_PSP: seconds for one input tuple, over all nodes of a ring (eq. 1)."""
    return central_work(steps, hardware) + hardware.send * check_nodes(nodes) * steps.travelling


def service_rate(steps: Steps, hardware: Hardware, nodes: int) -> float:
    """Input tuples a second if each had the ring for L_PSP seconds (eq. 3)."""
    return 1 / ring_work(steps, hardware, nodes)


def output_rate(steps: Steps, hardware: Hardware, nodes: int) -> float:
    """Results a second at most, all nodes busy all the time (eq. 4)."""
    return nodes * steps.results * service_rate(steps, hardware, nodes)


def latency(steps: Steps, hardware: Hardware, nodes: int) -> float:
    """Seconds from an input tuple to its results, with evenly loaded nodes and nothing waiting (eq. 5)."""
    at_node = hardware.join * steps.comparisons / check_nodes(nodes) + hardware.send * steps.travelling
    return (nodes - 1) / 2 * hardware.hop + max(at_node, steps.streams * nodes * hardware.hop)


@dataclass(frozen=True, slots=True)
class RingLength:
    """How long a ring should be: the bounds N_1 and N_2 of section 5.2, and the best whole number."""

    by_rounds: float
    by_spread: float
    nodes: int


def best_length(steps: Steps, hardware: Hardware) -> RingLength:
    """The ring with the least latency by equation 5."""
    hop, work = hardware.hop, hardware.join * steps.comparisons
    if not hop:
        raise QueryError("without a latency per hop no ring is too long; give 'hop' above zero")
    sent = hardware.send * steps.travelling
    rounds = steps.streams * hop
    by_rounds = (sent + sqrt(sent**2 + 4 * rounds * work)) / (2 * rounds)
    by_spread = (1 + sqrt(1 + 8 * work / hop)) / 2
    below = max(1, floor(min(by_rounds, by_spread)))
    best = min((below, below + 1), key=lambda nodes: latency(steps, hardware, nodes))
    return RingLength(by_rounds, by_spread, best)


def bandwidth_needed(steps: Steps, hardware: Hardware, nodes: int) -> float:
    """Bytes a second with which sending a tuple hides behind probing with it (eq. 6)."""
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
    steps = Steps(tuple(one.rows for one in order), tuple(one.selectivity for one in order))
    compared = sum(
        probing * one.rows / length
        for probing, one, length in zip(steps.probing, order, lengths, strict=True)
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
            tried = {one: decided.get(one, length) for one in ranked} | {name: length}
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
