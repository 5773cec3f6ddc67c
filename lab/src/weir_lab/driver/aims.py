"""Compare our measurements with Valsomatzis and Gounaris 2013, and say why where ours fall short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, mean

from weir_lab.aim import Aim
from weir_lab.driver.decision_time import STREAMS
from weir_lab.driver.engine import FIXED, Batches
from weir_lab.driver.measured import Measured
from weir_lab.driver.play import Score
from weir_lab.driver.settings import (
    CONSUMPTION,
    INITIAL,
    INTERLEAVED,
    LEAST,
    RATE,
    SETS,
    TABLE_4,
    TABLE_5,
    TIMESTAMP,
    Figures,
    paper,
)
from weir_lab.driver.work import Counted

LONG = "1M"
_EARLY = 0.84
_ALIKE = 0.05
_MILLISECOND = 1.0


def aims(measured: Measured) -> list[Aim]:
    """The closing table."""
    return [
        _table2(measured),
        *(aim for policy in (INITIAL, RATE) for aim in _early(measured, policy)),
        _timestamp(measured),
        *(_time(measured, policy) for policy in (INITIAL, RATE)),
        _work(measured),
        _parts(measured),
        _least(measured),
        *_engine(measured),
        *_more(measured),
        *_endless(measured),
        _choosing(measured),
    ]


def average(scores: Sequence[Score], policy: str, batch: str, ahead: bool, of: str) -> float | None:
    """The mean over the data sets of `time` or `early`, as in the last line of tables 4 and 5."""
    mine = [
        getattr(score, of)
        for score in scores
        if (score.policy, score.batch, score.ahead) == (policy, batch, ahead)
    ]
    return mean(mine) if mine else None


def paper_average(table: Figures, policy: str, batch: str) -> float | None:
    """The same from the paper's cells."""
    cells = [paper(table, data_set.name, policy, batch) for data_set in SETS]
    known = [cell for cell in cells if cell is not None]
    return mean(known) if known else None


def _table2(measured: Measured) -> Aim:
    good = sum(number.is_equal for number in measured.printed)
    return Aim(
        "table 2, counted over the keys of all rows",
        f"{len(measured.printed)} numbers",
        f"{good} of them exactly",
        good == len(measured.printed),
        "" if good == len(measured.printed) else "the generator is wrong",
    )


def _early(measured: Measured, policy: str) -> Iterator[Aim]:
    timed, told = (_mean(measured.scores, policy, ahead, "early") for ahead in (False, True))
    said = f"{paper_average(TABLE_5, policy, LONG):.2f}"
    yield Aim(
        f"table 5, 1M: share of results at half of timestamp's time, {policy}",
        said,
        f"{timed:.2f} ({_cells(measured, policy, False)}){_whole(measured, policy, 'early')}",
        timed >= _EARLY,
        "mostly because timestamp takes so long to look for the next row; see the next line",
    )
    yield Aim(
        f"the same with every order told beforehand, so that only joining is timed, {policy}",
        said,
        f"{told:.2f} ({_cells(measured, policy, True)})",
        told >= _EARLY,
        f"at half of timestamp's counted work it is {_counted(measured.counted, policy, 'early'):.2f}: a "
        f"result is most of the work, whoever finds it; the best of all orders there {_best(measured):.2f}",
    )


def _best(measured: Measured) -> float:
    """The largest share at half of the work that any order or policy has, mean of the data sets."""
    long = [count for count in measured.counted if count.batch == LONG]
    return fmean(max(c.early for c in long if c.data_set == name) for name in {c.data_set for c in long})


def _cells(measured: Measured, policy: str, ahead: bool) -> str:
    return ", ".join(
        f"{score.data_set} {score.early:.2f}"
        for score in measured.scores
        if (score.policy, score.batch, score.ahead) == (policy, LONG, ahead)
    )


def _timestamp(measured: Measured) -> Aim:
    early = _mean(measured.scores, TIMESTAMP, False, "early")
    said = paper_average(TABLE_5, TIMESTAMP, LONG) or 0.0
    return Aim("table 5, 1M: timestamp itself", f"{said:.2f}", f"{early:.2f}", abs(early - said) <= _ALIKE)


def _time(measured: Measured, policy: str) -> Aim:
    timed, told = (_mean(measured.scores, policy, ahead, "time") for ahead in (False, True))
    said = paper_average(TABLE_4, policy, LONG) or 1.0
    return Aim(
        f"table 4, 1M: running time beside timestamp, {policy}",
        f"{said:.2f}",
        f"{timed:.2f}{_whole(measured, policy, 'time')}",
        timed <= said,
        f"with every order told beforehand {told:.2f}: most of it is that timestamp looks for the oldest "
        "row each time, which in Python is dear",
    )


def _work(measured: Measured) -> Aim:
    most = {batch: _apart(measured.counted, batch) for batch in ("0.1M", LONG)}
    return Aim(
        "counted work (probes and partials) of all orders of I-VI, the dearest over the cheapest",
        "timestamp makes more probes",
        ", ".join(f"{batch} {apart:.4f}" for batch, apart in most.items()),
        max(most.values()) < 1 + _ALIKE,
        "the same results are found by every order, and they are most of the work",
    )


def _apart(counted: Sequence[Counted], batch: str) -> float:
    """The widest spread in any data set."""
    ratios = []
    for data_set in {count.data_set for count in counted}:
        work = [count.work for count in counted if (count.data_set, count.batch) == (data_set, batch)]
        ratios.append(max(work) / min(work))
    return max(ratios)


def _parts(measured: Measured) -> Aim:
    timed, told = (_mean(measured.scores, INITIAL, ahead, "time") for ahead in (False, True))
    work = _counted(measured.counted, INITIAL, "beside_timestamp")
    return Aim(
        f"where the time of timestamp goes that {INITIAL} saves, 1M",
        "probes, and changes of the driver",
        f"time {timed:.2f}; with orders told beforehand {told:.2f}, so not choosing and changing row by row "
        f"saves {told - timed:.0%}; counted work {work:.3f}, so {work - told:.0%} are neither",
        told - timed > 0.5 * (1 - timed),
    )


def _least(measured: Measured) -> Aim:
    timed, early = (_mean(measured.scores, LEAST, False, of) for of in ("time", "early"))
    work = _counted(measured.counted, LEAST, "beside_timestamp")
    return Aim(
        f"{LEAST} (ours): time and counted work beside timestamp, 1M",
        "(not in the paper)",
        f"{timed:.2f} and {work:.3f}; results at half time {early:.2f}",
        work <= min(_counted(measured.counted, p, "beside_timestamp") for p in (TIMESTAMP, INITIAL, RATE)),
    )


def _engine(measured: Measured) -> Iterator[Aim]:
    engine = measured.engine
    yield Aim(
        "weir's engine on I-VI, stream by stream: time beside the plan's own order, 1M",
        "(not in the paper)",
        ", ".join(f"{p} {_of(engine, p, 'beside_fixed'):.2f}" for p in (INITIAL, RATE, LEAST)),
        max(_of(engine, p, "beside_fixed") for p in (INITIAL, RATE, LEAST)) < 1 + 2 * _ALIKE,
        "an order gains no time: each has the same runs through the kernel and nearly the same work",
    )
    yield Aim(
        "weir's engine on I-VI: when a result is there on average, as a part of the batch's time, 1M",
        "(not in the paper)",
        ", ".join(f"{p} {_of(engine, p, 'moment'):.2f}" for p in (FIXED, INITIAL, RATE, LEAST)),
        max(_of(engine, p, "moment") for p in (INITIAL, RATE)) <= _of(engine, FIXED, "moment"),
        f"rows are stored and indexed before anybody probes; {CONSUMPTION} "
        f"{_of(engine, CONSUMPTION, 'moment'):.2f} (V, VI)",
    )
    yield Aim(
        "weir's engine on I-VI, row by row: time beside the plan's own order, 1M",
        "(not in the paper)",
        ", ".join(f"{p} {_of(engine, p, 'beside_fixed'):.2f}" for p in INTERLEAVED),
        max(_of(engine, p, "beside_fixed") for p in INTERLEAVED) < 1 + 4 * _ALIKE,
        "the rows of a stream run together; the ranks of the pairs found in a batch are compared one by one",
    )


def _more(measured: Measured) -> Iterator[Aim]:
    for name in dict.fromkeys(score.data_set for score in measured.more):
        mine = [score for score in measured.more if score.data_set == name]
        counted = [count for count in measured.more_counted if count.data_set == name]
        least = min(_mean(mine, policy, False, "early") for policy in (INITIAL, RATE))
        yield Aim(
            f"{name}: results at half of timestamp's time, 1M",
            "(not in the paper)",
            "; ".join(
                f"{p} {_mean(mine, p, False, 'early'):.2f} (told beforehand "
                f"{_mean(mine, p, True, 'early'):.2f}, by work {_counted(counted, p, 'early'):.2f})"
                for p in (TIMESTAMP, INITIAL, RATE, LEAST)
            ),
            least >= _EARLY,
            f"all orders' work within {_apart(counted, LONG) - 1:.1%}",
        )


def _endless(measured: Measured) -> Iterator[Aim]:
    for name in dict.fromkeys(batches.data_set for batches in measured.endless):
        mine = [batches for batches in measured.endless if batches.data_set == name]
        least, most = min(batches.work for batches in mine), max(batches.work for batches in mine)
        yield Aim(
            f"{name} stream in a window, weir's engine: time beside the plan's own order, moment of a result",
            "(not in the paper)",
            "; ".join(
                f"{batches.policy} {batches.beside_fixed:.2f}, {batches.moment:.2f}" for batches in mine
            ),
            max(_of(mine, p, "moment") for p in (INITIAL, RATE)) <= _of(mine, FIXED, "moment"),
            f"all work within {most / least - 1:.1%}",
        )


def _choosing(measured: Measured) -> Aim:
    taken = {choice.policy: choice.median_milliseconds for choice in measured.choices}
    return Aim(
        f"choosing an order of {STREAMS} streams",
        "(under 1 ms, ours)",
        ", ".join(f"{policy} {ms:.2f}" for policy, ms in taken.items()) + " ms",
        max(taken.values()) < _MILLISECOND,
        "medians; a plan's paths are found once and kept",
    )


def _mean(scores: Sequence[Score], policy: str, ahead: bool, of: str) -> float:
    return average(scores, policy, LONG, ahead, of) or 0.0


def _counted(counts: Sequence[Counted], order: str, of: str) -> float:
    return fmean(getattr(count, of) for count in counts if (count.order, count.batch) == (order, LONG))


def _of(measured: Sequence[Batches], policy: str, of: str) -> float:
    return fmean(getattr(batches, of) for batches in measured if batches.policy == policy)


def _whole(measured: Measured, policy: str, of: str) -> str:
    mean = average(measured.whole, policy, LONG, False, of)
    return "" if mean is None else f"; whole size, once: {mean:.2f}"
