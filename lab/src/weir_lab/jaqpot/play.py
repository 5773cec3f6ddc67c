"""Run the engine under an allowance and count its work; results are discarded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import weir
from weir.local.join import LocalJoin
from weir.local.query import LocalQuery
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.allowance import Allowance
from weir.shed.flow import convert_grants
from weir_lab.fork import fork
from weir_lab.jaqpot.settings import Setting
from weir_lab.virtual_machine import Delta
from weir_lab.workload import Workload

Feed = Callable[[int], Delta]


@dataclass(frozen=True, slots=True)
class Played:
    """Over so many virtual seconds: results that were fresh, results held back as stale, and probes."""

    seconds: float
    results: int
    stale: int
    probes: int

    @property
    def all_rate(self) -> float:
        """Results a second as Mukherji et al. 2011 counts them, the stale ones too."""
        return (self.results + self.stale) / self.seconds

    @property
    def fresh_rate(self) -> float:
        """Results a second that a user sees."""
        return self.results / self.seconds

    @property
    def stale_share(self) -> float:
        """Of all results, those that are stale."""
        results = self.results + self.stale
        return self.stale / results if results else 0.0


@dataclass(frozen=True)
class Stage:
    """A query before some batch, from which any number of runs can start."""

    query: LocalQuery
    feed: Feed
    every: float
    batch: int

    def play(self, seconds: float, allowed: Allowance | None = None) -> tuple[Played, Stage]:
        """Go on for some seconds under an allowance; the stage itself stays as it is."""
        query = fork(self.query)
        query.allow(allowed)
        count = max(1, round(seconds / self.every))
        results = stale = probes = 0
        for number in range(self.batch, self.batch + count):
            for _ in query.chunks(self.feed(number)):
                pass
            stats = query.last_report
            assert stats is not None
            results += stats.results
            stale += stats.counts.stale
            probes += sum(hop.probes for hop in stats.per_hop.values())
        played = Played(count * self.every, results, stale, probes)
        return played, Stage(query, self.feed, self.every, self.batch + count)


def start_stage(setting: Setting, factor: float, seed: int) -> Stage:
    """A setting with freshness of so many windows (if these are of rows), before its first row."""
    work = Workload(setting.graph, seed=seed)
    windows = setting.graph.windows
    fresh = {
        name: RowWindow(round(factor * window.rows))
        for name, window in windows.items()
        if isinstance(window, RowWindow)
    }
    asked = weir.join(
        streams={name: work.schema(name) for name in setting.graph.streams},
        on=work.on,
        within={name: _window(window) for name, window in windows.items()},
        fresh=fresh or None,
        select="true AS found",
        plan=setting.tree,
    )
    assert isinstance(asked, LocalJoin)
    return Stage(asked.start(), lambda number: work.delta(number, setting.every), setting.every, 0)


def fill_stage(setting: Setting, factor: float, seed: int) -> Stage:
    """The same once all its states are full, and hold what they do when nothing is skipped."""
    nothing = convert_grants(setting.net, [0.0] * len(setting.net.links), "newest")
    _, stored = start_stage(setting, factor, seed).play(1.05 * setting.longest, nothing)
    _, full = stored.play(1.2 * setting.renewal)
    return full


def _window(window: float | RowWindow) -> RowWindow | TimeWindow:
    return window if isinstance(window, RowWindow) else TimeWindow(round(1e6 * window))
