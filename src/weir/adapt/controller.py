"""Monitor, analyse, actuate: what an engine asks before each batch and tells after it.

The analysis runs in a thread of its own, one at a time, and no batch waits for it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from threading import Lock, Thread
from time import thread_time

from weir.adapt.analyse import Movable, PlanInForce, Recommendation, analyse
from weir.adapt.batch_report import BatchReport
from weir.adapt.calibrate import TYPICAL
from weir.adapt.change_detection import should_analyse
from weir.adapt.cpu_limit import is_stuck, limits
from weir.adapt.settings import Adapt
from weir.adapt.statistics import Statistics
from weir.errors import QueryError
from weir.plan.explain import show_bytes
from weir.plan.tree import Join
from weir.query.model import Budget, Query
from weir.shed.allowance import Allowance
from weir.shed.strategies import ShedName
from weir.stats.unit_costs import UnitCosts

_LOG = logging.getLogger("weir")


@dataclass(frozen=True, slots=True)
class Scope:
    """What a controller may change, how it sheds, by which unit costs, and the seconds between triggers."""

    movable: Movable = "nothing"
    shed: ShedName = "auto"
    costs: UnitCosts = TYPICAL
    interval: float | None = None


class Controller:
    """Learns from each batch and says when something should change.

    `budget` may be set while the query runs. `statistics` are what it knows, to be kept between runs.
    """

    def __init__(
        self,
        query: Query,
        running: PlanInForce,
        budget: Budget,
        settings: Adapt | None = None,
        scope: Scope | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        self.budget = budget
        self.statistics = statistics or Statistics()
        self._query, self._running = query, running
        self._settings, self._scope = settings or Adapt(), scope or Scope()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._found: tuple[Statistics, PlanInForce, Budget, Recommendation | None] | None = None
        self._weighed: Budget | None = None
        self._going_to: Join | None = None
        self._warned: set[str] = set()

    @property
    def running(self) -> PlanInForce:
        """What runs now."""
        return self._running

    def observe(self, seen: BatchReport) -> None:
        """Take in what a batch showed; if that calls for it, begin to analyse. Never waits."""
        self.learn(seen)
        self.weigh()

    def learn(self, seen: BatchReport) -> None:
        """Take in what a batch showed."""
        self.statistics = self.statistics.after(self._query, seen)
        if seen.plan == self._going_to:
            self._going_to = None
        if seen.plan != self._running.plan:
            self._running = PlanInForce(seen.plan, seen.allowance, self._running.basis)

    def weigh(self) -> None:
        """Begin to analyse, if what was learned calls for it. Never waits."""
        if self._is_busy() or self._found is not None or self.statistics.batches < self._settings.calibrate:
            return
        self._check_budget()
        now = limits(self.budget, self.statistics, self._scope.interval)
        basis = self._running.basis if self.budget == self._weighed else None
        if should_analyse(basis, self.statistics, self._settings, now, not self._running.is_exact):
            # As long as the states of another plan are being made, there is no talk of a third.
            movable = self._scope.movable if self._going_to is None else "nothing"
            known = (self.statistics, self._running, self.budget, movable)
            self._thread = Thread(target=self._analyse, args=known, daemon=True)
            self._thread.start()

    def decide(self) -> Recommendation | None:
        """What to do from the next batch on; None leaves all as it is. A verdict is given once."""
        with self._lock:
            found, self._found = self._found, None
        if found is None:
            return None
        basis, weighed, self._weighed, verdict = found
        if weighed.plan != self._running.plan:
            # Another plan has taken over meanwhile, to which what was found is no advice.
            self._running = replace(self._running, basis=None)
            return None
        self._running = replace(self._running, basis=basis)
        if verdict is not None and self._running.is_exact:
            # When rates leap, that is what work has taken so far.
            self.statistics = replace(self.statistics, scale=verdict.scale)
        if verdict is None or not self._is_worth(verdict):
            return None
        for warning in verdict.warnings:
            self._warn(warning)
        if verdict.plan != self._running.plan:
            self._going_to = verdict.plan
        self._running = PlanInForce(verdict.plan, verdict.allowance, basis)
        # What is skipped changes what the work takes, so that is measured anew.
        self.statistics = self.statistics.anew(verdict.scale)
        _LOG.info("from the next batch on: %s", verdict.reason)
        return verdict

    def refuse(self, plan: Join, allowance: Allowance | None) -> None:
        """The plan decided last cannot be had: this one goes on, and only its probing orders may change."""
        self._going_to, self._running = None, PlanInForce(plan, allowance)
        self._scope = replace(self._scope, movable="orders")

    def wait(self, seconds: float | None = None) -> None:
        """Wait for an analysis that runs."""
        if self._thread is not None:
            self._thread.join(seconds)

    def close(self) -> None:
        """Let an analysis that runs come to its end; what it finds is not used."""
        self.wait()
        self._found = None

    def _is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _is_worth(self, verdict: Recommendation) -> bool:
        stands = self._running
        if (verdict.plan, verdict.allowance) == (stands.plan, stands.allowance):
            return False
        return verdict.is_pressing or verdict.gain > self._settings.gain

    def _analyse(
        self, statistics: Statistics, running: PlanInForce, budget: Budget, movable: Movable
    ) -> None:
        scope, verdict, started = self._scope, None, thread_time()
        try:
            now = limits(budget, statistics, scope.interval)
            verdict = analyse(
                self._query, statistics, running, now, scope.costs, self._settings, scope.shed, movable
            )
            verdict = verdict and replace(verdict, seconds=thread_time() - started)
        except QueryError as error:
            self._warn(f"the running query cannot be weighed and goes on as it is: {error}")
        except Exception:
            # A query that cannot be weighed goes on as it is.
            _LOG.exception("the analysis of the running query failed; it goes on as it is")
        with self._lock:
            self._found = statistics, running, budget, verdict

    def _check_budget(self) -> None:
        """Say so where a budget cannot be held, whatever is decided."""
        most = self.budget.bytes
        if most is not None and self.statistics.bytes > most:
            self._warn(
                f"the state takes {show_bytes(self.statistics.bytes)}, more than its budget of "
                f"{show_bytes(most)}, because windows of rows are kept whole; shorten them, or give it more"
            )
        if is_stuck(self.budget, self.statistics, self._scope.interval):
            self._warn(
                f"a batch takes {self.statistics.fixed.value:.3g} seconds beside its join, more than its "
                f"budget of {self.budget} allows for all of it; longer batches or a larger budget would help"
            )

    def _warn(self, text: str) -> None:
        """Once for each kind of caution, whatever its numbers."""
        kind = re.sub(r"[0-9.]+", "", text)
        if kind not in self._warned:
            self._warned.add(kind)
            _LOG.warning(text)
