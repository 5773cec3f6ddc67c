"""What granted probes come to: rows flow as far as they are let."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.shed.allowance import Allowance
from weir.shed.hop_network import HopNetwork


@dataclass(frozen=True, slots=True)
class Flow:
    """What an allocation comes to, each second: rows at each link, its probes, results, inserts, the cost."""

    arriving: tuple[float, ...]
    probes: tuple[float, ...]
    results: float
    inserts: Mapping[str, float]
    spent: float


def flow(net: HopNetwork, grants: Sequence[float]) -> Flow:
    """Let rows flow: a link probes with what reaches it, at most with what it is granted.

    Where a producer makes more than its consumer may probe with, the rest is stored but goes no further: the
    producer-consumer mismatch (Mukherji et al. 2011, section 4.1).
    """
    arriving: list[float] = []
    probes: list[float] = []
    results, inserts = 0.0, dict.fromkeys(net.states, 0.0)
    for link, most in zip(net.links, grants, strict=True):
        arriving.append(link.rate + sum(probes[i] * net.links[i].productivity for i in link.sources))
        probes.append(min(most, arriving[-1]))
        found = probes[-1] * link.productivity
        if link.is_last:
            results += found
        elif link.feeds is not None:
            inserts[link.feeds] += found
    spent = sum(link.cost * made for link, made in zip(net.links, probes, strict=True))
    return Flow(tuple(arriving), tuple(probes), results, inserts, spent)


def allowance(net: HopNetwork, grants: Sequence[float]) -> Allowance:
    """An allocation as shares of what will reach each hop."""
    found = flow(net, grants)
    return Allowance(
        {
            link.hop: probes / arriving if arriving else 1.0
            for link, arriving, probes in zip(net.links, found.arriving, found.probes, strict=True)
        }
    )
