from __future__ import annotations

from weir.adapt.average import Average
from weir.adapt.cpu_limit import derive_limits
from weir.adapt.statistics import Statistics
from weir.plan.limits import Limits
from weir.query.model import Budget


def test_with_an_interval_a_long_batch_leaves_less_cpu_per_row() -> None:
    budget = Budget(cpu=0.5)
    quick, slow = (
        Statistics(span=1.0, seconds=taken, event_time_speed=Average(1.0, 1.0)) for taken in (0.2, 4.0)
    )
    assert [derive_limits(budget, known, 1.0).cpu for known in (quick, slow)] == [0.5, 0.125]
    assert derive_limits(budget, slow, None).cpu == 0.5, "without an interval, catching up is never shed"
    assert derive_limits(Budget(memory="1k"), slow, 1.0) == Limits(memory=1024)
