"""The strategies that skip probes, in any plan: the linear program, JAQPOT and GrePP as printed, thinning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from weir.plan.explain import format_share
from weir.query.windows import RowWindow
from weir.shed.directions import is_harvestable
from weir.shed.flow import compute_flow, convert_grants
from weir.shed.freshness import FreshnessError, compute_refresh_rates, find_loosening_factor
from weir.shed.harvest_model import Directions, HarvestSetting, full_setting
from weir.shed.hop_network import Grants, HopNetwork, Link
from weir.shed.jaqpot import grepp, jaqpot_printed
from weir.shed.linear_program import solve_grants, solve_steady_grants
from weir.shed.proposal import Overload, Proposal
from weir.shed.thin import thin
from weir.units import format_interval

# Divides a budget over the links of a hop network: probes a second for each.
ProbePolicy = Callable[[HopNetwork, float], Grants]


def shed_probes(overload: Overload) -> Proposal:
    """Skip probes so that the most results remain (Mukherji et al. 2011), by linear program."""
    if is_harvestable(overload.plan, overload.forecast.graph.windows):
        # No state but the streams' own: nothing to refresh, and lags tell the directions apart.
        net = build_network(overload.directions, full_setting(overload.directions))
        grants = solve_grants(net, overload.budget)
        return Proposal("jaqpot", convert_grants(net, grants), compute_flow(net, grants).results)
    builder = overload.forecast.network_builder(overload.plan)
    warnings: tuple[str, ...] = ()
    try:
        after, grants = _solve(overload, overload.fresh)
    except FreshnessError:
        after, grants = solve_steady_grants(builder, overload.budget)
        warnings = (_describe_staleness(overload),)
    return Proposal("jaqpot", convert_grants(after, grants), compute_flow(after, grants).results, warnings)


def shed_as_printed(overload: Overload) -> Proposal:
    """Skip probes by JAQPOT as printed (Mukherji et al. 2011, algorithm 1)."""
    net = overload.forecast.network_builder(overload.plan).network()
    try:
        grants = jaqpot_printed(net, overload.budget, _find_refresh_rates(overload, overload.fresh))
    except FreshnessError:
        stale = _describe_staleness(overload)
        return _convert(overload, "jaqpot-printed", net, grepp(net, overload.budget), (stale,))
    return _convert(overload, "jaqpot-printed", net, grants)


def shed_by_policy(name: str, policy: ProbePolicy) -> Callable[[Overload], Proposal]:
    """Make a strategy of a policy that knows no freshness."""

    def propose(overload: Overload) -> Proposal:
        net = overload.forecast.network_builder(overload.plan).network()
        return _convert(overload, name, net, policy(net, overload.budget))

    return propose


def shed_evenly(overload: Overload) -> Proposal:
    """Thin the plan to the share that the budget pays for; nothing below its root is shed."""
    forecast, plan, budget = overload.forecast, overload.plan, overload.budget
    (_, below_root), (_, everything) = (forecast.estimate(plan, thin(plan, share)) for share in (0.0, 1.0))
    at_root = everything - below_root
    share = min(1.0, max(0.0, (budget - below_root) / at_root)) if at_root > 0 else 1.0
    warnings: tuple[str, ...] = ()
    if below_root > budget:
        warnings = (
            f"the joins below the root of {plan} take {format_share(below_root)} of CPU and all probing may "
            f"take {format_share(budget)}, so thinning finds nothing; use plan='mjoin' or shed='jaqpot'",
        )
    allowance = thin(plan, share)
    return Proposal("thin", allowance, forecast.estimate(plan, allowance)[0], warnings)


def build_network(directions: Directions, setting: HarvestSetting) -> HopNetwork:
    """The hop network of an mjoin whose hops probe only the ages of a setting; without its paths."""
    links: list[Link] = []
    for direction, counts in zip(directions, setting, strict=True):
        steps = zip(direction.hops, direction.tables, counts, strict=True)
        for i, (hop, (partials, costs), count) in enumerate(steps):
            rate, sources = (0.0, (len(links) - 1,)) if i else (direction.rate, ())
            is_last = i == len(direction.hops) - 1
            links.append(Link(hop.hop, partials[count], rate, sources, None, is_last, costs[count]))
    return HopNetwork(tuple(links), (), {})


def _convert(
    overload: Overload, name: str, net: HopNetwork, grants: Grants, warnings: tuple[str, ...] = ()
) -> Proposal:
    """Propose the shares of some grants; results are those that the states which follow from them give."""
    allowance = convert_grants(net, grants)
    return Proposal(name, allowance, overload.forecast.estimate(overload.plan, allowance)[0], warnings)


def _solve(overload: Overload, fresh: Mapping[str, float]) -> tuple[HopNetwork, Grants]:
    """Divide the budget so that states are as fresh as this; a FreshnessError if it does not suffice."""
    builder = overload.forecast.network_builder(overload.plan)
    return solve_steady_grants(builder, overload.budget, _find_refresh_rates(overload, fresh))


def _find_refresh_rates(overload: Overload, fresh: Mapping[str, float]) -> dict[str, float]:
    """Rows a second that must enter the states that keep old rows when few arrive: those of row windows."""
    net = overload.forecast.network_builder(overload.plan).network()
    return compute_refresh_rates(overload.forecast.graph, net, fresh, net.residences)


def _describe_staleness(overload: Overload) -> str:
    """Say that freshness is out of reach, and what is possible, e.g. "possible: a 90 seconds, b 300 rows"."""
    factor = find_loosening_factor(overload.fresh, lambda fresh: _solve(overload, fresh))
    return (
        f"the CPU limit is too low to keep the states of {overload.plan} as fresh as requested, so stale "
        f"results will be found and dropped; {_describe_freshness(overload, factor)}"
    )


def _describe_freshness(overload: Overload, factor: float) -> str:
    if math.isinf(factor):
        return "no freshness is possible"
    graph, possible = overload.forecast.graph, []
    for name, fresh in overload.fresh.items():
        if isinstance(graph.windows[name], RowWindow):
            shown: object = RowWindow(math.ceil(round(factor * fresh * graph.rates[name], 6)))
        else:
            shown = format_interval(math.ceil(factor * fresh * 1e6))
        possible.append(f"{name} {shown}")
    return f"possible: {', '.join(possible)}"
