"""A generated join through the engine, and the comparison with what it should give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

import weir
from weir.local.join import LocalJoin
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.allowance import Allowance

from .case import Case, comparable
from .conditions import FUNCTIONS
from .reference import Admitted, Results


def asked(case: Case) -> LocalJoin:
    """The join as a user would ask for it."""
    return weir.join(
        streams={one.name: one.table for one in case.inputs},
        on=case.on,
        time={one.name: one.time for one in case.inputs},
        late={one.name: timedelta(microseconds=one.late) for one in case.inputs},
        within={one.name: length(one.window) for one in case.inputs if one.window is not None},
        select=None if case.select_all else ", ".join(f"{n}.id AS {n}_id" for n in case.names),
        cross=case.cross,
        functions=FUNCTIONS,
        plan=case.plan,
        driver_order=case.driver_order,
    )


def length(window: int | RowWindow) -> TimeWindow | RowWindow:
    return TimeWindow(window) if isinstance(window, int) else window


def results(table: pa.Table) -> Results:
    """A result table as a multiset of rows."""
    columns = [[comparable(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True))


def run_batches(case: Case, allowance: Allowance | None = None) -> tuple[Results, Admitted]:
    """The results of all batches together, and what the engine says it dropped."""
    query = asked(case).start()
    query.allow(allowance)
    found, late, null_time = Results(), [], []
    for batch in range(case.batches):
        tables = {
            one.name: one.batch(batch) for one in case.inputs if one.batch(batch) or not one.absent_when_empty
        }
        found += results(query.process(tables))
        assert query.last_report is not None
        late.append({name: query.last_report.counts.late.get(name, 0) for name in case.names})
        null_time.append({name: query.last_report.counts.null_time.get(name, 0) for name in case.names})
    return found, Admitted({}, late, null_time)


def run_whole(case: Case) -> Results:
    """The results of all rows in one batch."""
    return results(asked(case).to_arrow())


def compare(found: Results, wanted: Results) -> None:
    """Multisets are equal, with counts."""
    missing, extra = wanted - found, found - wanted
    assert not missing and not extra, (
        f"of {wanted.total()} results {missing.total()} are missing, like {missing.most_common(3)}, "
        f"and {extra.total()} are extra, like {extra.most_common(3)}"
    )


def compare_dropped(found: Admitted, wanted: Admitted) -> None:
    """Late rows and rows without a time are counted per batch and stream."""
    assert found.late == wanted.late
    assert found.null_time == wanted.null_time


@dataclass
class Tally:
    """How many cases were tried, and how many had an answer: comparing nothing proves nothing."""

    cases: int = 0
    answered: int = 0
    sizes: list[int] = field(default_factory=list)

    def add(self, wanted: Results) -> None:
        self.cases += 1
        self.answered += bool(wanted)
        self.sizes.append(wanted.total())


def explore(
    cases: SearchStrategy[Case], check: Callable[[Case], Results], examples: int, share: float = 0.4
) -> None:
    """Check as many cases, always the same ones; at least a share of them must have results."""
    tally = Tally()

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(cases)
    def each(case: Case) -> None:
        tally.add(check(case))

    each()
    print(f"{tally.cases} cases, {tally.answered} with results, {sum(tally.sizes)} results")
    assert tally.cases >= examples
    assert tally.answered >= share * tally.cases, tally
