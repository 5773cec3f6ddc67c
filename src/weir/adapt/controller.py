"""Controller: the monitor–analyse–actuate loop around the batches of a query.

take_recommendation ─> batch ─> learn ─> start_analysis ─> take_recommendation ─> ...
                                              └ in a thread, if the statistics changed; no batch waits for it
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from threading import Lock, Thread
from time import thread_time

from weir.adapt.analyse import AdaptationScope, Recommendation, analyse
from weir.adapt.batch_report import BatchReport
from weir.adapt.change_detection import should_analyse
from weir.adapt.cpu_limit import derive_limits, exceeds_by_fixed_cost
from weir.adapt.plan_estimator import PlanInForce
from weir.adapt.settings import Adapt
from weir.adapt.statistics import Statistics
from weir.errors import QueryError
from weir.plan.explain import format_bytes
from weir.plan.tree import Join
from weir.query.model import Budget, Query
from weir.shed.allowance import Allowance

_LOG = logging.getLogger("weir")


@dataclass(frozen=True, slots=True)
class _Analysis:
    """What an analysis started from, and what it recommends."""

    statistics: Statistics
    running: PlanInForce
    budget: Budget
    recommendation: Recommendation | None = None


class Controller:
    """Collects statistics, starts analyses, and hands out recommendations.

    `running` are the plan and allowance in force. `budget` may be set while the query runs; `statistics` may
    be stored and passed to the next run.
    """

    def __init__(
        self,
        query: Query,
        running: PlanInForce,
        budget: Budget,
        settings: Adapt | None = None,
        scope: AdaptationScope | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        self.budget = budget
        self.statistics = statistics or Statistics()
        self._query, self.running = query, running
        self._settings, self._scope = settings or Adapt(), scope or AdaptationScope()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._finished: _Analysis | None = None
        self._analysed_budget: Budget | None = None
        self._next_plan: Join | None = None  # recommended, while its intermediate states are being built
        self._warned: set[str] = set()

    def learn(self, seen: BatchReport) -> None:
        """Update the statistics with a batch."""
        self.statistics = self.statistics.after(self._query, seen)
        if seen.plan == self._next_plan:
            self._next_plan = None
        if seen.plan != self.running.plan:
            self.running = PlanInForce(seen.plan, seen.allowance, self.running.reference)

    def start_analysis(self) -> None:
        """Start an analysis if the statistics call for it and none is running. Never waits."""
        is_busy = self._thread is not None and self._thread.is_alive()
        if is_busy or self._finished is not None or self.statistics.batches < self._settings.calibrate:
            return
        self._check_budget()
        limits = derive_limits(self.budget, self.statistics, self._scope.interval)
        reference = self.running.reference if self.budget == self._analysed_budget else None
        is_shedding = not self.running.is_exact
        if should_analyse(reference, self.statistics, self._settings, limits, is_shedding):
            # While the states of the next plan are being built, do not look for another one.
            scope = self._scope if self._next_plan is None else replace(self._scope, changeable="nothing")
            analysis = _Analysis(self.statistics, self.running, self.budget)
            self._thread = Thread(target=self._analyse, args=(analysis, scope), daemon=True)
            self._thread.start()

    def take_recommendation(self) -> Recommendation | None:
        """Return what to change from the next batch on, or None. Each recommendation is returned once."""
        with self._lock:
            analysis, self._finished = self._finished, None
        if analysis is None:
            return None
        self._analysed_budget = analysis.budget
        if analysis.running.plan != self.running.plan:
            # Another plan has taken over since the analysis started, so it does not apply.
            self.running = replace(self.running, reference=None)
            return None
        running = self.running = replace(self.running, reference=analysis.statistics)
        recommendation = analysis.recommendation
        if recommendation is None:
            return None
        if running.is_exact:
            # Measured while exact, so it holds if rates jump.
            self.statistics = replace(self.statistics, scale=recommendation.scale)
        changes = (recommendation.plan, recommendation.allowance) != (running.plan, running.allowance)
        if not changes or not (recommendation.is_urgent or recommendation.gain > self._settings.gain):
            return None
        self._adopt(recommendation)
        return recommendation

    def refuse(self, plan: Join, allowance: Allowance | None) -> None:
        """Take back the last recommendation because its plan cannot run; `plan` continues.

        From now on only probing orders may change.
        """
        self._next_plan, self.running = None, PlanInForce(plan, allowance)
        self._scope = replace(self._scope, changeable="orders")

    def wait(self) -> None:
        """Wait for a running analysis."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Wait for a running analysis and ignore its recommendation."""
        self.wait()
        self._finished = None

    def _adopt(self, recommendation: Recommendation) -> None:
        for warning in recommendation.warnings:
            self._warn(warning)
        if recommendation.plan != self.running.plan:
            self._next_plan = recommendation.plan
        self.running = replace(self.running, plan=recommendation.plan, allowance=recommendation.allowance)
        self.statistics = self.statistics.restart_load(recommendation.scale)
        _LOG.info("from the next batch on: %s", recommendation.reason)

    def _analyse(self, analysis: _Analysis, scope: AdaptationScope) -> None:
        """Run an analysis in its thread; if it fails, the query continues as it is."""
        known, started = analysis.statistics, thread_time()
        try:
            limits = derive_limits(analysis.budget, known, scope.interval)
            recommendation = analyse(self._query, known, analysis.running, limits, self._settings, scope)
            if recommendation is not None:
                recommendation = replace(recommendation, seconds=thread_time() - started)
            analysis = replace(analysis, recommendation=recommendation)
        except QueryError as error:
            self._warn(f"cannot analyse the running query, so it continues unchanged: {error}")
        except Exception:
            _LOG.exception("the analysis of the running query failed, so it continues unchanged")
        with self._lock:
            self._finished = analysis

    def _check_budget(self) -> None:
        """Warn if no decision can keep the query within its budget."""
        most_bytes = self.budget.bytes
        if most_bytes is not None and self.statistics.bytes > most_bytes:
            self._warn(
                f"the state takes {format_bytes(self.statistics.bytes)}, more than its budget of "
                f"{format_bytes(most_bytes)}, because row windows are never evicted; shorten them or raise "
                "the memory budget"
            )
        if exceeds_by_fixed_cost(self.budget, self.statistics, self._scope.interval):
            self._warn(
                f"a batch takes {self.statistics.fixed.value:.3g} seconds besides its join, which alone "
                f"exceeds its budget of {self.budget}; use longer batches or a larger budget"
            )

    def _warn(self, text: str) -> None:
        """Log a warning once, whatever its numbers."""
        kind = re.sub(r"[0-9.]+", "", text)
        if kind not in self._warned:
            self._warned.add(kind)
            _LOG.warning(text)
