"""Section 6 of Zhu et al. 2010: how long each search takes, and how often it finds an existing plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time

from weir.plan.bushy import bushy
from weir.plan.choose import by_policy, two_layer
from weir.plan.hill_climb import state_removal, state_selection
from weir.plan.jtree_finder import all_qualified, frontier
from weir.plan.plan_candidate import PlanCandidate, joined, leaves
from weir.plan.space import Space
from weir_lab.qualified.settings import Design, Setting

EXHAUSTIVE, PLAIN = "exhaustive", "JTree-Finder, plain"
PAPER, OURS = "two-layer, as printed", "two-layer, ours"
SELECTION, REMOVAL = "state-selection", "state-removal"
# Beyond, these take minutes for a single setting.
PLAIN_STREAMS, EXHAUSTIVE_STREAMS = 6, 12
_MOST_STREAMS = {PLAIN: PLAIN_STREAMS, EXHAUSTIVE: EXHAUSTIVE_STREAMS}

Taken = tuple[float, float]  # CPU seconds each second, memory in rows


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one search made of one setting; `taken` is the plan's CPU and memory if it found one that fits.

    `seconds` are the processor's, not the wall's, so that a busy machine does not slow a search down.
    """

    design: Design
    streams: int
    setting: Setting
    algorithm: str
    seconds: float
    taken: Taken | None


def exhaustive(setting: Setting) -> Taken | None:
    """The frontier under the limits, and of it the plan with most headroom."""
    found = frontier(Space(setting.graph), setting.limits)
    return _taken(by_policy(found, setting.limits, "most headroom") if found else None)


def plain(setting: Setting) -> Taken | None:
    """Algorithm 1 as printed."""
    found = all_qualified(Space(setting.graph), setting.limits)
    return _taken(by_policy(found, setting.limits, "most headroom") if found else None)


def layers_as_printed(setting: Setting) -> Taken | None:
    """Algorithm 2 as printed."""
    return _two_layer(setting, paper=True)


def layers(setting: Setting) -> Taken | None:
    """Algorithm 2 with a proven lower bound, a longer selection, and a local search at the end."""
    return _two_layer(setting, paper=False)


def selection(setting: Setting) -> Taken | None:
    """Algorithm 3 alone, as printed, from the mjoin."""
    space = Space(setting.graph)
    return _taken(state_selection(space, setting.limits, joined(space, leaves(space.everything)), paper=True))


def removal(setting: Setting) -> Taken | None:
    """Algorithm 4 alone, from the best bjtree."""
    space = Space(setting.graph)
    return _taken(state_removal(space, setting.limits, bushy(space)))


ALGORITHMS: Mapping[str, Callable[[Setting], Taken | None]] = {
    EXHAUSTIVE: exhaustive,
    PLAIN: plain,
    PAPER: layers_as_printed,
    OURS: layers,
    SELECTION: selection,
    REMOVAL: removal,
}


def compare(design: Design, streams: int, found: Sequence[Setting], seconds: float) -> list[Outcome]:
    """Every search on every setting, as far as each gets in about so many seconds."""
    outcomes: list[Outcome] = []
    for name, algorithm in ALGORITHMS.items():
        if streams > _MOST_STREAMS.get(name, streams):
            continue
        left = seconds
        for setting in found:
            started = process_time()
            taken = algorithm(setting)
            spent = process_time() - started
            outcomes.append(Outcome(design, streams, setting, name, spent, taken))
            left -= spent
            if left < 0:
                break
    return outcomes


@dataclass(frozen=True, slots=True)
class Score:
    """One search at one N: settings tried, median and longest time, and how often it found what exists.

    `exact` are the settings where the exhaustive search says whether a plan exists; in the others of
    `existing` some search found one.
    """

    design: Design
    streams: int
    algorithm: str
    tried: int
    median_seconds: float
    longest_seconds: float
    existing: int
    exact: int
    found: int

    @property
    def percentage(self) -> float | None:
        """The qualified percentage (definition 4); None if no setting had a plan."""
        return 100 * self.found / self.existing if self.existing else None


def scores(outcomes: Sequence[Outcome]) -> list[Score]:
    """All searches at every N."""
    existing = _existing(outcomes)
    exact = {_place(one) for one in outcomes if one.algorithm == EXHAUSTIVE}
    groups: dict[tuple[Design, int, str], list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault((one.design, one.streams, one.algorithm), []).append(one)
    return [
        Score(
            design=design,
            streams=streams,
            algorithm=algorithm,
            tried=len(found),
            median_seconds=median(one.seconds for one in found),
            longest_seconds=max(one.seconds for one in found),
            existing=sum(_place(one) in existing for one in found),
            exact=sum(_place(one) in exact for one in found),
            found=sum(one.taken is not None for one in found),
        )
        for (design, streams, algorithm), found in groups.items()
    ]


def judged(outcomes: Sequence[Outcome], algorithm: str, exactly: bool) -> tuple[int, int]:
    """Plans found and plans that exist; `exactly`: only where the exhaustive search was there to tell.

    Elsewhere a plan is known to exist only because some search found it, so the share found is too high.
    """
    existing = _existing(outcomes)
    told = {_place(one) for one in outcomes if one.algorithm == EXHAUSTIVE}
    mine = [
        one
        for one in outcomes
        if one.algorithm == algorithm and _place(one) in existing and (_place(one) in told) == exactly
    ]
    return sum(one.taken is not None for one in mine), len(mine)


def misses(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Where a two-layer search found nothing although a plan exists."""
    existing = _existing(outcomes)
    return [
        one
        for one in outcomes
        if one.algorithm in (PAPER, OURS) and one.taken is None and _place(one) in existing
    ]


def apart(outcomes: Sequence[Outcome], design: Design, streams: int) -> tuple[int, int]:
    """Settings where both climbers found different plans, and where selection's has less memory, more CPU."""
    plans: dict[int, dict[str, Taken]] = {}
    for one in outcomes:
        if (one.design, one.streams) == (design, streams) and one.taken is not None:
            plans.setdefault(one.setting.number, {})[one.algorithm] = one.taken
    both = [(p[SELECTION], p[REMOVAL]) for p in plans.values() if SELECTION in p and REMOVAL in p]
    differing = [(one, other) for one, other in both if one != other]
    return len(differing), sum(one[1] < other[1] and one[0] > other[0] for one, other in differing)


def disagreements(found: Sequence[Setting]) -> int:
    """In how many settings the frontier is not exactly what no plan of the plain search beats."""
    return sum(not _agree(one) for one in found)


def unlimited_seconds(found: Sequence[Setting]) -> float:
    """The median time of the whole frontier, without any limits to prune by."""
    seconds = []
    for one in found:
        started = process_time()
        frontier(Space(one.graph))
        seconds.append(process_time() - started)
    return median(seconds)


def _agree(setting: Setting) -> bool:
    space = Space(setting.graph)
    everything = sorted((p.cpu, p.memory) for p in all_qualified(space, setting.limits))
    quick = [(p.cpu, p.memory) for p in frontier(space, setting.limits)]
    return all(_beaten(one, quick) for one in everything) and all(_beaten(one, everything) for one in quick)


def _beaten(one: Taken, plans: Sequence[Taken]) -> bool:
    """True if a plan takes no more of both; sums in another order differ in the last bits."""
    return any(p[0] <= one[0] * (1 + 1e-9) and p[1] <= one[1] * (1 + 1e-9) for p in plans)


def _two_layer(setting: Setting, paper: bool) -> Taken | None:
    chosen = two_layer(setting.graph, setting.limits, paper)
    return (chosen.taken.cpu, chosen.taken.memory) if chosen.qualified else None


def _taken(plan: PlanCandidate | None) -> Taken | None:
    return None if plan is None else (plan.cpu, plan.memory)


def _place(one: Outcome) -> tuple[Design, int, int]:
    return one.design, one.streams, one.setting.number


def _existing(outcomes: Sequence[Outcome]) -> set[tuple[Design, int, int]]:
    """Settings with a qualified plan: whatever any search found is proof of one."""
    return {_place(one) for one in outcomes if one.taken is not None}
