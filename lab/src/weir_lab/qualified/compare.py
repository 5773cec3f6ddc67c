"""Section 6 of Zhu et al. 2010: how long each search takes, and how often it finds an existing plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time

from weir.plan.bushy import find_bushy_tree
from weir.plan.choose import most_headroom
from weir.plan.hill_climb import state_removal
from weir.plan.jtree_finder import find_frontier
from weir.plan.plan_candidate import PlanCandidate, make_mjoin
from weir.plan.space import Space
from weir_lab.qualified import as_printed
from weir_lab.qualified.settings import Design, Setting, search_layers

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
    plans = find_frontier(Space(setting.graph), setting.limits)
    return _taken(most_headroom(plans, setting.limits) if plans else None)


def plain(setting: Setting) -> Taken | None:
    """Algorithm 1 as printed."""
    plans = as_printed.find_all_qualified(Space(setting.graph), setting.limits)
    return _taken(most_headroom(plans, setting.limits) if plans else None)


def layers_as_printed(setting: Setting) -> Taken | None:
    """Algorithm 2 as printed."""
    return _taken(as_printed.search_two_layers(Space(setting.graph), setting.limits))


def layers(setting: Setting) -> Taken | None:
    """Algorithm 2 with a proven lower bound, a longer selection, and a local search at the end."""
    return _taken(search_layers(setting))


def selection(setting: Setting) -> Taken | None:
    """Algorithm 3 alone, as printed, from the mjoin."""
    space = Space(setting.graph)
    return _taken(as_printed.select_states(space, setting.limits, make_mjoin(space)))


def removal(setting: Setting) -> Taken | None:
    """Algorithm 4 alone, from the best bjtree."""
    space = Space(setting.graph)
    return _taken(state_removal(space, setting.limits, find_bushy_tree(space)))


ALGORITHMS: Mapping[str, Callable[[Setting], Taken | None]] = {
    EXHAUSTIVE: exhaustive,
    PLAIN: plain,
    PAPER: layers_as_printed,
    OURS: layers,
    SELECTION: selection,
    REMOVAL: removal,
}


def compare(design: Design, streams: int, settings: Sequence[Setting], seconds: float) -> list[Outcome]:
    """Every search on every setting, as far as each gets in about so many seconds."""
    outcomes: list[Outcome] = []
    for name, algorithm in ALGORITHMS.items():
        if streams > _MOST_STREAMS.get(name, streams):
            continue
        left = seconds
        for setting in settings:
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
    solved: int

    @property
    def percentage(self) -> float | None:
        """The qualified percentage (definition 4); None if no setting had a plan."""
        return 100 * self.solved / self.existing if self.existing else None


def score_outcomes(outcomes: Sequence[Outcome]) -> list[Score]:
    """All searches at every N."""
    existing = _existing(outcomes)
    exact = {_key(outcome) for outcome in outcomes if outcome.algorithm == EXHAUSTIVE}
    groups: dict[tuple[Design, int, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.design, outcome.streams, outcome.algorithm), []).append(outcome)
    return [
        Score(
            design=design,
            streams=streams,
            algorithm=algorithm,
            tried=len(group),
            median_seconds=median(outcome.seconds for outcome in group),
            longest_seconds=max(outcome.seconds for outcome in group),
            existing=sum(_key(outcome) in existing for outcome in group),
            exact=sum(_key(outcome) in exact for outcome in group),
            solved=sum(outcome.taken is not None for outcome in group),
        )
        for (design, streams, algorithm), group in groups.items()
    ]


def count_solved(outcomes: Sequence[Outcome], algorithm: str, exactly: bool) -> tuple[int, int]:
    """Plans found and plans that exist; `exactly`: only where the exhaustive search was there to tell.

    Elsewhere a plan is known to exist only because some search found it, so the share found is too high.
    """
    existing = _existing(outcomes)
    told = {_key(outcome) for outcome in outcomes if outcome.algorithm == EXHAUSTIVE}
    mine = [
        outcome
        for outcome in outcomes
        if outcome.algorithm == algorithm and _key(outcome) in existing and (_key(outcome) in told) == exactly
    ]
    return sum(outcome.taken is not None for outcome in mine), len(mine)


def find_misses(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Where a two-layer search found nothing although a plan exists."""
    existing = _existing(outcomes)
    return [
        outcome
        for outcome in outcomes
        if outcome.algorithm in (PAPER, OURS) and outcome.taken is None and _key(outcome) in existing
    ]


def count_different_plans(outcomes: Sequence[Outcome], design: Design, streams: int) -> tuple[int, int]:
    """Settings where both climbers found different plans, and where selection's has less memory, more CPU."""
    plans: dict[int, dict[str, Taken]] = {}
    for outcome in outcomes:
        if (outcome.design, outcome.streams) == (design, streams) and outcome.taken is not None:
            plans.setdefault(outcome.setting.number, {})[outcome.algorithm] = outcome.taken
    both = [(p[SELECTION], p[REMOVAL]) for p in plans.values() if SELECTION in p and REMOVAL in p]
    differing = [(selected, removed) for selected, removed in both if selected != removed]
    return len(differing), sum(
        selected[1] < removed[1] and selected[0] > removed[0] for selected, removed in differing
    )


def count_disagreements(settings: Sequence[Setting]) -> int:
    """In how many settings the frontier is not exactly what no plan of the plain search beats."""
    return sum(not _agree(setting) for setting in settings)


def unlimited_seconds(settings: Sequence[Setting]) -> float:
    """The median time of the whole frontier, without any limits to prune by."""
    seconds = []
    for setting in settings:
        started = process_time()
        find_frontier(Space(setting.graph))
        seconds.append(process_time() - started)
    return median(seconds)


def _agree(setting: Setting) -> bool:
    space = Space(setting.graph)
    plain = sorted((p.cpu, p.memory) for p in as_printed.find_all_qualified(space, setting.limits))
    frontier = [(p.cpu, p.memory) for p in find_frontier(space, setting.limits)]
    return all(_beaten(plan, frontier) for plan in plain) and all(_beaten(plan, plain) for plan in frontier)


def _beaten(plan: Taken, plans: Sequence[Taken]) -> bool:
    """True if a plan takes no more of both; sums in another order differ in the last bits."""
    return any(p[0] <= plan[0] * (1 + 1e-9) and p[1] <= plan[1] * (1 + 1e-9) for p in plans)


def _taken(plan: PlanCandidate | None) -> Taken | None:
    return None if plan is None else (plan.cpu, plan.memory)


def _key(outcome: Outcome) -> tuple[Design, int, int]:
    return outcome.design, outcome.streams, outcome.setting.number


def _existing(outcomes: Sequence[Outcome]) -> set[tuple[Design, int, int]]:
    """Settings with a qualified plan: whatever any search found is proof of one."""
    return {_key(outcome) for outcome in outcomes if outcome.taken is not None}
