"""Compute the flow of rows along the links of a hop network, for the probes that each link may make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.errors import QueryError
from weir.shed.allowance import Allowance, Choose
from weir.shed.hop_network import HopNetwork


@dataclass(frozen=True, slots=True)
class Flow:
    """Per second: rows that reach each link, its probes, results, inserts into each state, and the cost."""

    arriving: tuple[float, ...]
    probes: tuple[float, ...]
    results: float
    inserts: Mapping[str, float]
    spent: float


def compute_flow(net: HopNetwork, grants: Sequence[float]) -> Flow:
    """Let rows flow: a link probes with the rows that reach it, up to its grant.

    Where a producer makes more than its consumer may probe with, the rest is stored but goes no further: the
    producer-consumer mismatch (Mukherji et al. 2011, section 4.1).
    """
    arriving: list[float] = []
    probes: list[float] = []
    results, inserts = 0.0, dict.fromkeys(net.states, 0.0)
    for link, grant in zip(net.links, grants, strict=True):
        arriving.append(link.rate + sum(probes[i] * net.links[i].productivity for i in link.sources))
        probes.append(min(grant, arriving[-1]))
        partials = probes[-1] * link.productivity
        if link.is_last:
            results += partials
        elif link.feeds is not None:
            inserts[link.feeds] += partials
    spent = sum(link.cost * made for link, made in zip(net.links, probes, strict=True))
    return Flow(tuple(arriving), tuple(probes), results, inserts, spent)


def convert_grants(net: HopNetwork, grants: Sequence[float], choose: Choose = "hash") -> Allowance:
    """Express grants as shares of the rows that will reach each hop.

    By hash, every row that reaches a hop is as likely as the others to probe, so that what is found tells
    without bias what there is.
    """
    flowing = compute_flow(net, grants)
    rows = zip(net.links, flowing.arriving, flowing.probes, strict=True)
    shares = {link.hop: made / arriving if arriving else 1.0 for link, arriving, made in rows}
    return Allowance(shares, choose)


def check_budget(budget: float) -> None:
    """Refuse a budget that is not a positive number."""
    if not (math.isfinite(budget) and budget > 0):
        raise QueryError(f"the budget must be above zero; got {budget}")
