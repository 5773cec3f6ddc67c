"""Background analysis: one analysis at a time in a thread of its own; no batch waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, Thread
from time import thread_time

from weir.adapt.analyse import AdaptationScope, Analysis, Usage, analyse
from weir.adapt.statistics import Statistics
from weir.errors import QueryError
from weir.plan.limits import Limits
from weir.plan.tree import Join
from weir.query.model import Budget, Query

_LOG = logging.getLogger("weir")


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """What is analysed: a query as it was when the analysis began."""

    query: Query
    statistics: Statistics
    plan: Join
    budget: Budget
    limits: Limits
    scope: AdaptationScope
    usage: Usage | None
    barred: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FinishedAnalysis:
    """An analysis, None if there is nothing to find or it failed, and the CPU seconds it took."""

    request: AnalysisRequest
    analysis: Analysis | None
    seconds: float


class BackgroundAnalysis:
    """Runs analyses; if one fails, `warn` is told and the query continues as it is."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._lock = Lock()
        self._thread: Thread | None = None
        self._finished: FinishedAnalysis | None = None

    @property
    def is_busy(self) -> bool:
        """True if an analysis is running, or has a result that nobody has taken yet."""
        return (self._thread is not None and self._thread.is_alive()) or self._finished is not None

    def start(self, request: AnalysisRequest) -> None:
        """Start an analysis; the caller makes sure that none is running."""
        self._thread = Thread(target=self._run, args=(request,), daemon=True)
        self._thread.start()

    def take(self) -> FinishedAnalysis | None:
        """Return a result once; None if there is none yet."""
        with self._lock:
            finished, self._finished = self._finished, None
        return finished

    def wait(self) -> None:
        """Wait for a running analysis."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, given: AnalysisRequest) -> None:
        began, analysis = thread_time(), None
        try:
            analysis = analyse(
                given.query,
                given.statistics,
                given.plan,
                given.limits,
                given.scope,
                given.usage,
                given.barred,
            )
        except QueryError as error:
            self._warn(f"cannot analyse the running query, so it continues unchanged: {error}")
        except Exception:
            _LOG.exception("the analysis of the running query failed, so it continues unchanged")
        with self._lock:
            self._finished = FinishedAnalysis(given, analysis, thread_time() - began)
