from __future__ import annotations

from weir.adapt.average import Average
from weir.adapt.cpu_limit import CpuLimit, derive_cpu_limit
from weir.adapt.statistics import Statistics
from weir.query.model import Budget


def test_with_an_interval_a_long_batch_leaves_less_cpu_per_row() -> None:
    budget = Budget(cpu=0.5)
    quick, slow = (
        Statistics(span=1.0, seconds=taken, event_time_speed=Average(1.0, 1.0)) for taken in (0.2, 4.0)
    )
    assert derive_cpu_limit(budget, quick, 1.0) == CpuLimit(1.0, 0.5, 1.0)
    assert derive_cpu_limit(budget, slow, 1.0) == CpuLimit(4.0, 0.5, 1.0), "four times the rows"
    unhurried = derive_cpu_limit(budget, slow, None)
    assert unhurried == CpuLimit(1.0, 0.5), "without an interval, catching up is never shed"
    assert derive_cpu_limit(Budget(memory="1k"), slow, 1.0) is None


def test_what_spark_takes_is_no_part_of_the_budget_but_of_the_room() -> None:
    known = Statistics(span=1.0, seconds=0.7, fixed=Average(0.6, 1.0), event_time_speed=Average(1.0, 1.0))
    assert derive_cpu_limit(Budget(cpu=0.5), known, 1.0) == CpuLimit(1.0, 0.5, 0.4)
