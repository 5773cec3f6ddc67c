from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from weir_lab.bench.crash import Outcome, compare
from weir_lab.bench.processes import kill, list_descendants, list_session


@pytest.mark.parametrize(
    ("written", "lost", "duplicate", "wrong"),
    [
        ([1, 2, 2, 3], 0, 0, 0),
        ([1, 2, 3], 1, 0, 0),
        ([1, 2, 2, 3, 3], 0, 1, 0),
        ([1, 2, 2, 9], 1, 0, 1),
        ([], 4, 0, 0),
    ],
)
def test_rows_arecompared_as_multisets(written: list[int], lost: int, duplicate: int, wrong: int) -> None:
    outcome = Outcome(seed=1)
    compare(outcome, pa.table({"k": [3, 1, 2, 2]}), pa.table({"k": pa.array(written, pa.int64())}))
    assert (outcome.lost, outcome.duplicate, outcome.wrong) == (lost, duplicate, wrong)
    assert outcome.is_exact == (written == [1, 2, 2, 3])


def test_an_output_without_results_proves_nothing() -> None:
    outcome = Outcome(seed=1)
    compare(outcome, pa.table({"k": pa.array([], pa.int64())}), pa.table({"k": pa.array([], pa.int64())}))
    assert not outcome.is_exact


def test_only_what_is_in_the_session_is_found_and_killed() -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(sleeper, start_new_session=True) as alone:
        assert [process.pid for process in list_session(alone.pid)] == [alone.pid]
        assert alone.pid in [process.pid for process in list_descendants(os.getpid())]
        (process,) = list_session(alone.pid)
        assert kill(process)
        assert alone.wait() == -9
    assert not kill(process)
