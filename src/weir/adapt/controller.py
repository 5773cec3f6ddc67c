"""Controller: keeps a query within its CPU budget, and tries what might find more results for it.

    learn ──▶ throttle   every batch: thin the driver rows of the root until the batch fits its limit
         └──▶ analyse    in a thread, no batch waits for it: find a challenger by the cost model
                └──▶ trial   run the challenger for a window; it stays only if it measurably finds more

Thinning is the floor: it needs no model, and recall falls in a line with the CPU. An exact plan that fits is
never left. Without a CPU budget nothing is shed, and a better plan by the model is adopted at once.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace

from weir.adapt.analyse import AdaptationScope, Analysis, Usage, choose_learning_allowance
from weir.adapt.background_analysis import AnalysisRequest, BackgroundAnalysis, FinishedAnalysis
from weir.adapt.batch_report import BatchReport
from weir.adapt.challenges import Challenges, Change
from weir.adapt.change_detection import describe_changes
from weir.adapt.choice import Choice, choose
from weir.adapt.cost_fit import measure_work, model_storing
from weir.adapt.cpu_limit import CpuLimit, derive_cpu_limit
from weir.adapt.load import count_probing
from weir.adapt.recommendation import Recommendation, Warnings, describe_base, explain_share
from weir.adapt.settings import Adapt
from weir.adapt.statistics import Statistics
from weir.adapt.throttle import Throttle, choose_share
from weir.adapt.trial import Base
from weir.plan.default_plan import mjoin
from weir.plan.explain import format_bytes
from weir.plan.limits import Limits
from weir.plan.tree import Join
from weir.query.model import Budget, Query
from weir.shed.allowance import Allowance
from weir.shed.thin import trim

_LOG = logging.getLogger("weir")
# Windows below this share of their expected rows are still filling up, too early to try anything.
_FILLED_SHARE = 0.9
# A query that thins less than this has nothing to win by a challenger.
_HARDLY_THINNED = 0.97
# Shedding by more than thinning is solved again if it takes less than this share of its limit, or must be
# thinned to less than this on top.
_UNDERUSED_SHARE, _OVERUSED_SHARE = 0.8, 0.8
# A reason names at most this many changes, and a share that changes by less than this is not a new decision.
_MOST_CHANGES, _SHARE_CHANGE = 3, 0.1
_SHARE_DIGITS = 3


class Controller:
    """Collects statistics, throttles the query, and tries challengers.

    `budget` may be set while the query runs; `statistics` may be stored and passed to the next run.
    """

    def __init__(
        self,
        query: Query,
        plan: Join,
        allowance: Allowance | None,
        budget: Budget,
        settings: Adapt | None = None,
        scope: AdaptationScope | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        self.budget = self._followed = budget
        self.statistics = statistics or Statistics()
        self._query, self._settings = query, settings or Adapt()
        self._scope = scope or AdaptationScope()
        self._window = _longest_window(query)
        self._challenges = self._undone = self._resume(plan)
        self._running = allowance  # of the active plan
        self._promise = 1.0  # the recall that the model expects of what is in force
        self._limit: CpuLimit | None = None  # of the last batch
        self._throttle: Throttle | None = None  # of the active plan
        self._reference: Statistics | None = None  # of the last analysis
        self._analysed_budget: Budget | None = None
        self._warnings = Warnings()
        self._analysis = BackgroundAnalysis(self._warnings.tell)

    def learn(self, seen: BatchReport) -> None:
        """Update the statistics with a batch, and judge the trial that it belongs to."""
        self.statistics = self.statistics.after(self._query, seen)
        self._follow_plan(seen.plan)
        self._running = seen.allowance
        if self.budget.cpu is not None and self.statistics.is_regular and seen.span:
            self._measure(seen)
        self.statistics = replace(self.statistics, challenges=self._challenges)

    def start_analysis(self) -> None:
        """Start an analysis if the statistics call for it and none is running. Never waits."""
        if self._analysis.is_busy or self.statistics.batches < self._settings.calibrate:
            return
        self._check_memory()
        if not self._challenges.is_settled or not self._should_analyse():
            return
        now = self._challenges = self._challenges.lift_bars()
        known, limits, usage = self.statistics, self._limits(), self._measure_usage()
        self._analysis.start(
            AnalysisRequest(
                self._query, known, now.base.plan, self.budget, limits, self._scope, usage, now.barred_kinds
            )
        )

    def take_recommendation(self) -> Recommendation | None:
        """Return what to change from the next batch on, or None."""
        self._follow_budget()
        self._undone = self._challenges
        finished = self._analysis.take()
        if finished is not None:
            self._consider(finished)
        self._limit = derive_cpu_limit(self.budget, self.statistics, self._scope.interval)
        change = self._challenges.following
        if change is None:
            return self._throttle_active()
        self._promise = change.recall
        self._challenges = self._challenges.adopt(change.base)
        if self._challenges.before is None:
            return self._throttle_active(change)
        allowance, throttle = self._allow(change.base)
        if throttle is None:
            allowance = self._thin_as_promised(change)
        _LOG.info("from the next batch on: %s", change.reason)
        return replace(_recommend(change, allowance), changes_plan=True)

    def refuse(self, plan: Join) -> None:
        """Take back the last recommendation because its plan cannot run; `plan` continues.

        From now on only probing orders may change.
        """
        before = replace(self._undone, following=None)
        self._challenges = before if before.active.plan == plan else before.reset(self._floor(plan))
        self._scope = replace(self._scope, changeable="orders")

    def wait(self) -> None:
        """Wait for a running analysis."""
        self._analysis.wait()

    def close(self) -> None:
        """Wait for a running analysis and ignore its result."""
        self._analysis.wait()
        self._analysis.take()

    @property
    def expected_overrun(self) -> float:
        """How many times its CPU limit the next batch is meant to take; 1 unless the limit cannot be kept."""
        throttle, limit = self._throttle, self._limit
        if throttle is None or limit is None or not throttle.is_hopeless:
            return 1.0
        return max(1.0, throttle.predicted / limit.seconds)

    def _floor(self, plan: Join) -> Base:
        """A plan that sheds by nothing but thinning; under a budget it samples rows to learn lags."""
        windows = dict(zip(self._query.names, self._query.windows, strict=True))
        learns = self.budget.cpu is not None or self.budget.bytes is not None
        return Base(plan, choose_learning_allowance(windows, plan, self._scope.shed) if learns else None)

    def _resume(self, plan: Join) -> Challenges:
        """What an earlier run of the query had in force, if it still is what is asked for."""
        known, floor, shed = self.statistics.challenges, self._floor(plan), self._scope.shed
        if known is None:
            return Challenges(floor)
        is_asked = shed == "auto" or {known.base.strategy, known.active.strategy} <= {"", shed}
        is_same = known.base.plan == plan and self.budget.cpu is not None
        return known if is_same and is_asked else known.reset(floor)

    def _follow_plan(self, plan: Join) -> None:
        """Note which plan was active in a batch: the one decided, or one that somebody else has chosen."""
        if plan == self._challenges.active.plan:
            return
        self._throttle, arrived = None, self._challenges.arrive(plan)
        self._challenges = arrived if plan == arrived.active.plan else arrived.reset(self._floor(plan))

    def _follow_budget(self) -> None:
        """Without a CPU budget nothing is shed for it, and under any budget rows are sampled."""
        if self.budget == self._followed:
            return
        self._followed, now = self.budget, self._challenges
        floor = self._floor(now.base.plan)
        if now.base != floor and (self.budget.cpu is None or not now.base.sheds):
            self._challenges = now.reset(floor, now.before and self._floor(now.before.plan))

    def _measure(self, seen: BatchReport) -> None:
        """Add what a batch did and took, and judge by it."""
        limit, throttle, key = self._limit, self._throttle, self._challenges.active.key
        batch = measure_work(seen, self._scope.costs, len(self._query.select))
        load = self.statistics.load.after(key, batch, count_probing(seen), seen.span)
        is_shedding = seen.allowance is not None and seen.allowance.sheds
        # Where shedding is given up, batches may take more than the budget: there is nothing to make up for.
        is_balanced = is_shedding and (throttle is None or not throttle.is_hopeless)
        ratio = 1.0 if limit is None else seen.work / limit.allow(seen.span)
        self.statistics = replace(self.statistics, load=load.balance(ratio if is_balanced else None))
        self._judge(seen.span, self._find_recall(seen), ratio)

    def _find_recall(self, seen: BatchReport) -> float | None:
        """The recall by which the active decision is judged; None: by this batch it is not.

        What thinning finds is known by its share. What other shedding misses is told by few sampled rows, so
        that the results are counted instead, and held against the share of all combinations that were results
        before its trial.
        """
        now = self._challenges
        tried, sheds = now.trial or now.won, now.active.sheds
        if tried is None and not sheds and self.statistics.window_fill < _FILLED_SHARE:
            return None
        if tried is not None and sheds and seen.is_complete:
            exact = tried.exact_share * math.prod(self.statistics.rates.values()) * seen.span
            return min(1.0, seen.results / exact) if exact else seen.recall
        return seen.recall

    def _judge(self, span: float, recall: float | None, ratio: float) -> None:
        """Add a batch of the active decision, and end its trial or its stay."""
        if self._challenges.trial is not None and self._throttle is not None and self._throttle.is_hopeless:
            recall = 0.0  # what it would find within the budget
        self._challenges, ended = self._challenges.after(span, recall, ratio, self._window)
        if ended is None:
            if self._challenges.is_settled:
                self._leave_tree_if_too_costly()
            return
        what, found = describe_base(ended.trial.challenger), ended.trial.measured.mean
        if ended.verdict == "won":
            _LOG.info("%s stays: it finds %.0f%% of the results", what, 100 * found)
        elif ended.verdict == "lost":
            why = f"{what} found {found:.0%} of the results, not {ended.trial.standing.mean:.0%}"
            self._go_to(ended.trial.before, why)
        else:
            # Nothing is barred: there may be more rows now, of which thinning finds less as well.
            self._go_to(self._floor(ended.trial.before.plan), f"{what} has become worse")
            self._reference = None

    def _leave_tree_if_too_costly(self) -> None:
        """Where the joins below the root alone exceed the budget, the mjoin is what can be thinned."""
        throttle, limit, plan = self._throttle, self._limit, self._challenges.base.plan
        if throttle is None or limit is None or not throttle.is_hopeless:
            return
        floor = self._floor(mjoin(self._query))
        if plan.is_mjoin or self._scope.changeable != "tree" or self._stores_too_much(floor, limit):
            return
        self._challenges = self._challenges.bar("tree", self._window)
        self._go_to(floor, f"the joins below the root of {plan} take too much")

    def _stores_too_much(self, floor: Base, limit: CpuLimit) -> bool:
        """True if storing rows alone, all that the mjoin does outside its root, exceeds the limit."""
        load, rows = self.statistics.load, limit.span * sum(self.statistics.rates.values())
        key = floor.key if floor.key in load.fits else self._challenges.base.key
        return load.fit(key).measure_outside(model_storing(rows, self._scope.costs)) > limit.seconds

    def _go_to(self, base: Base, reason: str) -> None:
        self._challenges = replace(self._challenges, following=Change(base, reason))

    def _allow(self, base: Base, before: Throttle | None = None) -> tuple[Allowance | None, Throttle | None]:
        """Return the allowance of a base in the next batch, thinned as far as the limit asks for."""
        known, load, limit = self.statistics, self.statistics.load, self._limit
        is_changing = abs(known.window_fill - 1) > 1 - _FILLED_SHARE
        work = load.forecast(base.key, is_changing)
        if work is None or limit is None or known.batches < self._settings.calibrate:
            return base.allowance, None
        throttle = choose_share(
            load.fit(base.key),
            work * limit.span,
            limit,
            load.spent,
            is_exact=self._running is None or not self._running.sheds,
            was_hopeless=before is not None and before.is_hopeless,
        )
        share = round(throttle.share / base.mean_share(known.rates), _SHARE_DIGITS)
        return (base.allowance if share >= 1 else trim(base.allowance, base.plan, share)), throttle

    def _thin_as_promised(self, change: Change) -> Allowance | None:
        """Return the allowance of a base that never ran, of which only the promise is known."""
        base = change.base
        if base.sheds or change.recall >= 1 or self.budget.cpu is None:
            return base.allowance
        return trim(base.allowance, base.plan, round(change.recall, _SHARE_DIGITS))

    def _throttle_active(self, change: Change | None = None) -> Recommendation | None:
        """Recommend another share for the active plan, if it needs one or there is a `change`."""
        base, before, limit = self._challenges.active, self._throttle, self._limit
        allowance, throttle = self._allow(base, before)
        self._throttle = throttle
        if throttle is None or limit is None:
            if change is not None:
                allowance = self._thin_as_promised(change)
            change = change or self._explain_new_budget(base)
            if change is None or allowance == self._running:
                return None
            return _recommend(change, allowance)
        if throttle.is_hopeless:
            self._warn_of_kept(throttle, limit)
        if allowance == self._running:
            return None
        is_other = before is None or abs(throttle.share - before.share) > _SHARE_CHANGE * before.share
        why = explain_share(throttle, limit, base)
        why = why if change is None else f"{change.reason}; {why}"
        is_notable = is_other or change is not None
        if is_notable:
            _LOG.info("from the next batch on: %s", why)
        return Recommendation(
            base.plan,
            allowance,
            why,
            recall=self._promise if base.sheds else throttle.share,
            cpu=throttle.predicted / limit.span,
            memory=float(self.statistics.bytes),
            is_notable=is_notable,
            seconds=0.0 if change is None else change.seconds,
        )

    def _explain_new_budget(self, base: Base) -> Change | None:
        """Say what a budget that came or went changes of what runs; None if nothing."""
        running = self._running
        if running is None:
            is_sampled = base.allowance is not None
            return Change(base, "rows are sampled, to learn lags for the budget") if is_sampled else None
        # A load was measured only if there was a CPU budget.
        is_left_over = self.budget.cpu is None and running.sheds and bool(self.statistics.load.fits)
        if not is_left_over:
            return None
        return Change(base, "there is no CPU budget any more, so no probes are skipped")

    def _should_analyse(self) -> bool:
        throttle, now = self._throttle, self._challenges
        has_changed = now.is_due or self.budget != self._analysed_budget or self._has_changed
        if self.budget.cpu is None:
            return has_changed or self._is_over_memory
        if throttle is None or self._limit is None:
            return False
        if now.base.sheds:
            return has_changed or self._is_misused(throttle, self._limit)
        if self._scope.has_own_strategy:
            return throttle.share < 1
        return has_changed and self._may_try and throttle.share < _HARDLY_THINNED

    @property
    def _has_changed(self) -> bool:
        """True if the statistics differ from those of the last analysis, or there was none."""
        reference = self._reference
        return reference is None or bool(describe_changes(reference, self.statistics, self._settings))

    def _is_misused(self, throttle: Throttle, limit: CpuLimit) -> bool:
        """True if what sheds in force takes much more than its limit, or less and could find more."""
        now = self._challenges
        mean = now.base.mean_share(self.statistics.rates)
        if throttle.share < _OVERUSED_SHARE * mean:
            return True
        taken = throttle.kept + mean * (throttle.exact - throttle.kept)
        could_find_more = now.is_proven(self._window) and now.standing.mean < _HARDLY_THINNED
        return taken < _UNDERUSED_SHARE * limit.seconds and could_find_more

    @property
    def _may_try(self) -> bool:
        is_full = self.statistics.window_fill >= _FILLED_SHARE
        return is_full and self._challenges.may_try(self._window)

    @property
    def _is_over_memory(self) -> bool:
        return self.budget.bytes is not None and self.statistics.bytes > self.budget.bytes

    def _limits(self) -> Limits:
        memory = float("inf") if self.budget.bytes is None else float(self.budget.bytes)
        limit = self._limit
        return Limits(memory=memory) if limit is None else Limits(limit.seconds / limit.span, memory)

    def _measure_usage(self) -> Usage | None:
        """What the base takes per event second before it is thinned, if that has been measured."""
        base, load, rates = self._challenges.base, self.statistics.load, self.statistics.rates
        works, span = load.works.get(base.key), self.statistics.span
        if not works:
            return None
        # Part of the seconds is per batch, not per event second.
        kept, skippable = load.fit(base.key).split(works[-1] * span)
        kept, skippable = kept / base.stored_share(rates), skippable * base.mean_share(rates)
        return Usage(kept / span, skippable / span, base.allowance)

    def _consider(self, finished: FinishedAnalysis) -> None:
        """Adopt what an analysis found, or begin to try it."""
        request, now = finished.request, self._challenges
        reference, self._reference = self._reference, request.statistics
        self._analysed_budget = request.budget
        if not now.is_settled or request.plan != now.base.plan or request.budget != self.budget:
            self._reference = None  # something else has been decided since the analysis started
            return
        choice = Choice() if finished.analysis is None else self._choose(finished.analysis)
        best, now = choice.candidate, self._challenges
        if best is None or best.base == now.base:
            return
        for warning in best.warnings:
            self._warnings.tell(warning)
        changes = [] if reference is None else describe_changes(reference, request.statistics, self._settings)
        why = "; ".join([*changes[:_MOST_CHANGES], *["try it for a window"] * choice.is_trial])
        text = f"{describe_base(best.base)} should find {best.recall:.0%} of the results"
        reason = f"{why}: {text}" if why else text
        change = Change(best.base, reason, best.recall, best.cpu, best.memory, finished.seconds)
        exact_share = request.statistics.exact_share
        self._challenges = (
            now.begin(change, exact_share) if choice.is_trial else replace(now, following=change)
        )

    def _choose(self, analysis: Analysis) -> Choice:
        """Choose what an analysis found, and note when to ask again."""
        if self.budget.cpu is None:
            is_better = analysis.gain > self._settings.gain or self._is_over_memory
            return Choice(analysis.best if is_better else None)
        choice = choose(analysis, self._challenges, self._scope, self._settings, self._may_try)
        if choice.asks_again == "soon":
            self._reference = None
        elif choice.asks_again == "later":
            self._challenges = self._challenges.pause(self._window)
        return choice

    def _check_memory(self) -> None:
        """Warn if no decision can keep the query within its memory."""
        most_bytes = self.budget.bytes
        if most_bytes is not None and self._is_over_memory:
            self._warnings.tell(
                f"the state takes {format_bytes(self.statistics.bytes)}, more than its budget of "
                f"{format_bytes(most_bytes)}, because row windows are never evicted; shorten them or raise "
                "the memory budget"
            )

    def _warn_of_kept(self, throttle: Throttle, limit: CpuLimit) -> None:
        self._warnings.tell(
            f"storing rows and joining below the root takes {throttle.kept:.3g} CPU seconds a batch, and "
            f"{limit.seconds:.3g} are allowed by the budget ({self.budget}), so skipping probes would hardly "
            "help and is done only as far as batches must end before their trigger; use a larger budget"
        )


def _recommend(change: Change, allowance: Allowance | None) -> Recommendation:
    """Recommend a change with what the model expects of it."""
    return Recommendation(
        change.base.plan,
        allowance,
        change.reason,
        change.recall,
        change.cpu,
        change.memory,
        seconds=change.seconds,
    )


def _longest_window(query: Query) -> float:
    """The event seconds for which a row can be reached; zero where all windows count rows."""
    retentions = (query.bounds.retention(i) for i in range(len(query.names)))
    return max((retention / 1e6 for retention in retentions if retention and retention > 0), default=0.0)
