from __future__ import annotations

import logging

import pytest

from weir.adapt.cpu_limit import CpuLimit
from weir.adapt.recommendation import Warnings, explain_share
from weir.adapt.throttle import Throttle
from weir.adapt.trial import Base
from weir.plan.tree import join
from weir.shed.allowance import Allowance

LIMIT = CpuLimit(2.0, 0.3)


def test_a_share_is_explained_by_seconds_per_second() -> None:
    thinned = explain_share(Throttle(0.46, 0.62, 0.0, 0.3), LIMIT, Base(join("a", "b")))
    assert thinned == "the exact join takes CPU 31% (limit 15%), so 46% of the rows that enter the root probe"
    dropping = Base(join("a", "b"), Allowance(drop={"a": 0.5}), "random-drop")
    fits = explain_share(Throttle(1.0, 0.2, 0.0, 0.2), LIMIT, dropping)
    assert fits == "shedding by random-drop takes CPU 10% (limit 15%), so no more probes are skipped"


def test_a_warning_is_told_once_whatever_its_numbers(caplog: pytest.LogCaptureFixture) -> None:
    warnings = Warnings()
    with caplog.at_level(logging.WARNING, "weir"):
        for text in ("it takes 1.5 seconds", "it takes 2 seconds", "it takes long"):
            warnings.tell(text)
    assert [record.message for record in caplog.records] == ["it takes 1.5 seconds", "it takes long"]
