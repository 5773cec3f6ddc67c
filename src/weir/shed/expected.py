"""What an allowance is expected to give and to take, when the streams are as a graph says."""

from __future__ import annotations

from weir.plan import Join
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.shed.directions import Look, directions, is_harvestable
from weir.shed.flow import Flow, flow
from weir.shed.network import Network, network, resized
from weir.stats import Correlations, JoinGraph


def expected(
    graph: JoinGraph,
    plan: Join,
    allowance: Allowance | None = None,
    correlations: Correlations | None = None,
    basic: float | None = None,
) -> tuple[float, float]:
    """Results a second, and seconds a second for what can be skipped; without an allowance, those of all."""
    allowed = allowance or Allowance()
    if not is_harvestable(graph, plan):
        found = _through(graph, plan, allowed)
        return found.results, found.spent
    every = next((ages.every / 1e6 for ages in allowed.ages.values()), basic)
    results = spent = 0.0
    for one in directions(graph, plan, every, correlations):
        partials = one.rate * (1 - allowed.drop.get(one.stream, 0.0))
        for look in one.looks:
            probes = partials * allowed.share(look.hop)
            looked, likely = _looked_at(look, allowed.ages.get(look.hop))
            there = 1 - allowed.drop.get(look.hop.partner, 0.0)
            partials = probes * likely * there * look.selectivity * look.rows
            spent += probes * looked * there * (look.search + look.compare) + partials * look.match
        results += partials
    if not allowed.sample or not allowed.sheds:
        return results, spent
    # Sampled rows pass and look at everything.
    all_results, all_spent = expected(graph, plan, None, correlations, basic)
    sample = allowed.sample
    return results + sample * (all_results - results), spent + sample * (all_spent - spent)


def _looked_at(look: Look, ages: Ages | None) -> tuple[float, float]:
    """The share of a window that is looked at, and the share of its matches that lie there."""
    if ages is None:
        return 1.0, 1.0
    kept = [k for k in ages.kept if k < len(look.scores)]
    looked, whole = len(kept) / len(look.scores), sum(look.scores)
    return looked, sum(look.scores[k] for k in kept) / whole if whole else looked


def _through(graph: JoinGraph, plan: Join, allowed: Allowance) -> Flow:
    """Rows flow as far as their shares let them, into states that are as large as what is let in."""
    net = network(graph, plan, in_seconds=True)
    first = flow(net, _grants(net, allowed))
    settled = resized(graph, plan, net, first.inserts, in_seconds=True)
    return flow(settled, _grants(settled, allowed))


def _grants(net: Network, allowed: Allowance) -> list[float]:
    grants: list[float] = []
    for link in net.links:
        arriving = link.rate + sum(grants[i] * net.links[i].productivity for i in link.sources)
        grants.append(arriving * allowed.share(link.hop))
    return grants
