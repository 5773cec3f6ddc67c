"""Work cap: divide the rows that start on a path into runs, and start none once the path's steps are spent.

    rows of a path, by time    ├─ 256 ─┼─── 1024 ───┼── 310 ──┼─ 96 ─┼ ...... capped ......┤
    steps left of its part     100 %     96 %         40 %      18 %   -1 %

Each run follows the whole path before the next one starts, so the cut falls between runs: a path takes the
steps of its part and those of one run at most. A run may be as small as `_FEWEST_ROWS` rows, but a single row
may match any number of others. Rows come in the order of their times and contents, and the size of a run
depends on nothing but the rows and the steps counted before it. Steps are counted alike with and without
Numba, so a batch that is run again is cut at the same row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from weir.kernel.decision import Decision
from weir.kernel.keys import Bools
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import NodePlan, PhysicalPlan
from weir.kernel.probe_shedding import concat_content, mark_highest
from weir.stats.batch_counts import count_steps
from weir.stats.hop import HopStats

# A run is to take about an eighth of the steps left: the first one even if each of its rows matches all rows
# of its first partner, the others by what the rows before them took.
_RUN_SHARE = 1 / 8
_FIRST_ROWS = 256
_FEWEST_ROWS = 16
_MOST_ROWS = 1 << 14
# A run has at most so many times the rows of the one before it, as rows to come may take more ...
_GROWTH = 8
# ... unless all rows left together would take a small share of the steps: then they are the last run.
_SMALL_SHARE = 1 / 64


def divide_cap(decision: Decision, physical: PhysicalPlan, node: NodePlan, spent: int | None) -> int | None:
    """Return the steps that the paths of a join may take, given what those before it have `spent`.

    The cap is divided over the joins by their numbers of paths. What the joins below leave unused is for
    those above, but what they took beyond their part is not taken from them. If it is not known what was
    spent, a join has its own part alone.
    """
    cap = decision.work_cap
    if cap is None:
        return None
    paths = [len(each.paths) for each in physical.nodes]
    number = physical.nodes.index(node)
    own_part = cap * paths[number] // sum(paths)
    if spent is None:
        return own_part
    return max(own_part, max(cap - spent, 0) * paths[number] // sum(paths[number:]))


def divide_rows(
    rows: Sequence[Partial], partner_rows: int, max_steps: int, work: Sequence[HopStats]
) -> Iterator[list[Partial]]:
    """Yield the rows of a path in runs, until its hops have taken `max_steps`; count those left over.

    `partner_rows` is how many rows the first partner has. A run must have been followed to its end when the
    next one is asked for. Sampled rows are not preferred: those that start stand for those that do not.
    """
    before, total = count_steps(work), sum(partial.rows for partial in rows)
    if not rows or max_steps <= 0:
        work[0].capped += total
        return
    size = _limit_run(max_steps, 1.0 + partner_rows, _FIRST_ROWS)
    if total <= size:
        yield list(rows)
        return
    left, spent = rows, 0
    while left and spent < max_steps:
        run, left = _take_earliest(left, size)
        started = sum(partial.rows for partial in run)
        yield run
        steps = count_steps(work) - before - spent
        spent += steps
        rows_left, steps_left = sum(partial.rows for partial in left), max_steps - spent
        steps_per_row = max(steps / started, 1.0)
        if rows_left * steps_per_row <= _SMALL_SHARE * steps_left:
            size = rows_left
        else:
            size = _limit_run(steps_left, steps_per_row, min(_GROWTH * started, _MOST_ROWS))
    work[0].capped += sum(partial.rows for partial in left)


def _limit_run(steps_left: int, steps_per_row: float, most_rows: int) -> int:
    return max(_FEWEST_ROWS, min(int(_RUN_SHARE * steps_left / steps_per_row), most_rows))


def _take_earliest(rows: Sequence[Partial], count: int) -> tuple[list[Partial], list[Partial]]:
    """Divide rows into the `count` earliest and the others; content breaks ties."""
    ends = np.cumsum([partial.rows for partial in rows])
    if ends[-1] <= count:
        return list(rows), []
    times = np.concatenate([partial.latest(lambda schema: schema.times) for partial in rows])
    is_taken = mark_highest(~times, count, lambda: concat_content(rows))
    marks = np.split(is_taken, ends[:-1])
    return _pick(rows, marks), _pick(rows, [~mark for mark in marks])


def _pick(rows: Sequence[Partial], marks: Sequence[Bools]) -> list[Partial]:
    picked = (partial.pick(np.flatnonzero(mark)) for partial, mark in zip(rows, marks, strict=True))
    return [partial for partial in picked if partial.rows]
