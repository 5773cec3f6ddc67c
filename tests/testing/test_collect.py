"""Stories that both engines tell alike: late rows, crashes, and what is collected of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import weir
from weir.errors import QueryError
from weir.runtime.batch_events import PHASES
from weir.testing import Collected, Crash, ListSource, ManualClock, run

Runner = Callable[..., Collected]

SPARK = pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")])


@pytest.fixture(params=["local", SPARK])
def run_job(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    """`run`, on each engine."""
    if request.param == "local":
        return run
    return partial(run, spark=request.getfixturevalue("spark"), folder=tmp_path)


def paid(orders: Any, payments: Any) -> Any:
    return weir.join(
        orders=orders,
        payments=payments,
        on="orders.id = payments.id",
        within="1 minute",
        late="10 seconds",
        select="orders.id, payments.amount",
    )


def test_a_late_row_joins_within_the_lateness_and_is_dropped_behind_it(run_job: Runner) -> None:
    clock = ManualClock("2024-01-02 12:00+00:00")
    source = ListSource(
        {"orders": [{"ts": clock.now(), "id": 1}], "payments": [{"ts": clock.now(), "id": 0, "amount": 1.0}]},
        {
            "payments": [{"ts": clock.ago("9 seconds"), "id": 1, "amount": 2.0}],
            "orders": [{"ts": clock.ago("11 seconds"), "id": 0}],
        },
    )
    results = run_job(paid, source)
    assert results.batches == ([], [{"id": 1, "amount": 2.0}])
    assert results.late == {"orders": 1}


def test_a_crash_in_every_phase_changes_no_result(run_job: Runner) -> None:
    clock = ManualClock()
    steps: list[Any] = []
    is_local = run_job is run
    for number, phase in enumerate(PHASES):
        ts = clock.advance("5 seconds")
        batch = {
            "orders": [{"ts": ts, "id": number}],
            "payments": [{"ts": ts, "id": max(0, number - 1), "amount": float(number)}],
        }
        steps += [batch] if is_local and phase == "spark_commit" else [Crash(phase), batch]
    results = run_job(paid, ListSource(*steps))
    first = [{"id": 0, "amount": 0.0}]
    assert results.batches == (first, *([{"id": n - 1, "amount": float(n)}] for n in range(1, len(PHASES))))
    assert len(results.progress) == len(PHASES)


def test_two_crashes_in_one_batch(run_job: Runner) -> None:
    ts = ManualClock().now()
    rows = {"orders": [{"ts": ts, "id": 7}], "payments": [{"ts": ts, "id": 7, "amount": 1.0}]}
    assert run_job(paid, ListSource(Crash("sync_batch"), Crash(), rows)).rows == [{"id": 7, "amount": 1.0}]


def test_an_error_of_the_job_is_not_taken_for_a_crash() -> None:
    def fail(ids: Any) -> Any:
        raise ConnectionError("the service is down")

    def job(**streams: Any) -> Any:
        functions = {"known": weir.udf(lambda ours, theirs: fail(ours))}
        return weir.join(**streams, on="known(a.id, b.id)", within="1 minute", functions=functions)

    rows = [{"ts": ManualClock().now(), "id": 1}]
    with pytest.raises(Exception, match="the service is down"):
        run(job, ListSource(Crash(), {"a": rows, "b": rows}))


def test_a_crash_after_the_commit_needs_a_checkpoint() -> None:
    with pytest.raises(QueryError, match="no checkpoint to start from"):
        run(paid, ListSource(Crash("spark_commit"), {}))
