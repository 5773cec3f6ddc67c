from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from tests.adapt.simulated_machine import asked

from weir.adapt import background_analysis as module
from weir.adapt.analyse import AdaptationScope
from weir.adapt.background_analysis import AnalysisRequest, BackgroundAnalysis
from weir.adapt.statistics import Statistics
from weir.errors import QueryError
from weir.plan.default_plan import mjoin
from weir.plan.limits import NO_LIMITS
from weir.query.model import Budget

QUERY = asked()
REQUEST = AnalysisRequest(QUERY, Statistics(), mjoin(QUERY), Budget(), NO_LIMITS, AdaptationScope(), None)


def test_a_result_is_taken_once_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    go = Event()

    def slow(*given: Any) -> None:
        assert go.wait(20)

    monkeypatch.setattr(module, "analyse", slow)
    analysis = BackgroundAnalysis(lambda text: None)
    assert not analysis.is_busy
    analysis.start(REQUEST)
    assert analysis.is_busy and analysis.take() is None
    go.set()
    analysis.wait()
    assert analysis.is_busy, "its result has not been taken"
    finished = analysis.take()
    assert finished is not None and finished.request is REQUEST and finished.analysis is None
    assert not analysis.is_busy and analysis.take() is None


def test_what_cannot_be_analysed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*given: Any) -> None:
        raise QueryError("nothing ties stream 'a' to the others")

    monkeypatch.setattr(module, "analyse", failing)
    told: list[str] = []
    analysis = BackgroundAnalysis(told.append)
    analysis.start(REQUEST)
    analysis.wait()
    assert len(told) == 1 and "nothing ties stream 'a'" in told[0]
    finished = analysis.take()
    assert finished is not None and finished.analysis is None
