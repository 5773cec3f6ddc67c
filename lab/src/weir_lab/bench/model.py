"""`weir-lab bench model`: what the cost model says of random queries against what running them takes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice, pairwise
from math import exp, log
from statistics import fmean, median, quantiles
from time import process_time

import numpy as np
import pyarrow as pa

from weir.adapt.calibrate import calibrate_costs
from weir.adapt.estimate import estimate_join_graph
from weir.local.query import LocalQuery
from weir.plan.cost import cost
from weir.plan.probing_orders import choose_probing_orders
from weir.plan.space import Space
from weir.plan.tree import Join, JTree, Leaf, join
from weir.query.build import build_query
from weir.query.model import Query
from weir.query.options import QueryOptions
from weir.runtime.decide import DecidedPlan, Policy
from weir.stats.join_graph import JoinGraph, Streams
from weir.stats.unit_costs import UnitCosts
from weir_lab.bench.figure import Figure, from_json, to_json

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_SECOND = 1_000_000
_START = 1_700_000_000
_SCHEMA = pa.schema(
    {"ts": pa.timestamp("us"), "k": pa.int64(), "l": pa.int64(), "x": pa.float64(), "y": pa.float64()}
)
_KINDS = ("one key", "two keys", "bands", "residual")
_SHAPES = ("mjoin", "bjtree", "mixed")
# What a query may put out or carry along a path each second: beyond, it would take too long to run.
_MOST_ROWS = 150_000
_TRIALS, _STEADY = 36, 10
_QUICK_TRIALS, _QUICK_STEADY = 12, 5
_CPU_AIM, _MEMORY_AIM = 0.30, 0.05


@dataclass(frozen=True, slots=True)
class Trial:
    """A random query, what is true of its streams, the plan to run, and the seed of its rows."""

    kind: str
    on: str
    select: str
    rates: dict[str, int]
    windows: dict[str, float]
    keys: tuple[int, int]
    selectivities: dict[Streams, float]
    shape: str
    plan: Join
    seed: int

    @property
    def query(self) -> Query:
        """The query itself."""
        windows = {name: f"{round(seconds * _SECOND)} us" for name, seconds in self.windows.items()}
        options = QueryOptions(on=self.on, within=windows, select=self.select)
        return build_query(dict.fromkeys(self.rates, _SCHEMA), options)

    def graph(self, costs: UnitCosts) -> JoinGraph:
        """What the generator knows of it, and nothing that a run tells."""
        return estimate_join_graph(self.query, self.rates, self.selectivities, costs)

    def second(self, number: int) -> dict[str, pa.Table]:
        """The rows of one second of all streams."""
        tables = {}
        for i, (name, rate) in enumerate(self.rates.items()):
            rng = np.random.default_rng((self.seed, i, number))
            times = (_START + number) * _SECOND + np.sort(rng.integers(0, _SECOND, rate))
            keys = [rng.integers(0, domain, rate) for domain in self.keys]
            columns = [pa.array(times).cast(_SCHEMA.field("ts").type), *map(pa.array, keys)]
            tables[name] = pa.table([*columns, rng.random(rate), rng.random(rate)], schema=_SCHEMA)
        return tables

    def __str__(self) -> str:
        rates = ", ".join(f"{n} {r}/s for {self.windows[n]} s" for n, r in self.rates.items())
        return f"{self.shape} {self.plan} over {self.kind} ({self.on}); {rates}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds a batch and bytes of state of one trial, as predicted and as measured."""

    trial: Trial
    cpu: tuple[float, float]
    memory: tuple[float, float]


def run(quick: bool = False) -> list[Figure]:
    """Try random queries in a process of its own, where each library is held to one thread."""
    environment = os.environ | dict.fromkeys(_ONE_THREAD, "1")
    command = [sys.executable, "-m", "weir_lab.bench.model", *(["--quick"] if quick else [])]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return from_json(done.stdout)


def measure(quick: bool) -> list[Figure]:
    """The figures, in this process; each query is told on stderr as it is done."""
    pa.set_cpu_count(1)
    costs = calibrate_costs()
    tried, steady = (_QUICK_TRIALS, _QUICK_STEADY) if quick else (_TRIALS, _STEADY)
    outcomes = []
    for trial in islice(draw_trials(), tried):
        outcomes.append(run_trial(trial, costs, steady))
        cpu, memory = (predicted / taken for predicted, taken in (outcomes[-1].cpu, outcomes[-1].memory))
        # On stderr, since stdout carries the figures to the process that asked.
        print(
            f"CPU {cpu:.2f}, memory {memory:.2f} of {1e3 * outcomes[-1].cpu[1]:.1f} ms, "
            f"{outcomes[-1].memory[1] / 1e6:.2f} MB: {trial}",
            file=sys.stderr,
            flush=True,
        )
    return [
        *_figures("CPU", [(outcome.cpu, outcome.trial) for outcome in outcomes], _CPU_AIM),
        *_figures("memory", [(outcome.memory, outcome.trial) for outcome in outcomes], _MEMORY_AIM),
    ]


def run_trial(trial: Trial, costs: UnitCosts, steady: int) -> Outcome:
    """Run a trial until its windows are full, then for some more batches, and compare these."""
    predicted = cost(trial.graph(costs), trial.plan)
    running = LocalQuery(Policy(trial.query, "auto"), DecidedPlan(trial.plan))
    filling = int(max(trial.windows.values())) + 2
    seconds, kept = [], []
    for number in range(filling + steady):
        rows = trial.second(number)
        started = process_time()
        for _ in running.chunks(rows):
            pass
        seconds.append(process_time() - started)
        kept.append(sum(size.bytes for size in running.state.sizes().values()))
    return Outcome(
        trial, (predicted.cpu, median(seconds[filling:])), (predicted.memory, fmean(kept[filling:]))
    )


def draw_trials() -> Iterator[Trial]:
    """Random queries without end, always the same ones; kinds and shapes of plans take turns."""
    tried = count()
    for number in count():
        kind, shape = _KINDS[number % len(_KINDS)], _SHAPES[number % len(_SHAPES)]
        yield next(trial for seed in tried if (trial := _drawn(seed, kind, shape)) is not None)


def _drawn(seed: int, kind: str, shape: str) -> Trial | None:
    """A random query, or None if it would put out too much or too little."""
    rng = np.random.default_rng(seed)
    names = tuple("abcdef"[: rng.integers(3, 7)])
    rates = {name: int(10 ** rng.uniform(1.7, 3.7)) for name in names}
    windows = {name: round(rng.uniform(2, 12), 1) for name in names}
    if rng.random() < 0.5:
        windows = dict.fromkeys(names, windows["a"])
    alive = exp(fmean(log(rates[name] * windows[name]) for name in names))
    keys = (_domain(rng, alive), _domain(rng, alive))
    conditions, shares = _conditions(rng, kind, names, keys, alive)
    columns = [f"{name}.{column} AS {name}{column}" for name in names for column in "xy"]
    select = ", ".join(columns[: rng.integers(1, len(columns) + 1)])
    plan = join(*names) if shape == "mjoin" else join(*_parts(rng, names, shape == "bjtree"))
    trial = Trial(kind, " AND ".join(conditions), select, rates, windows, keys, shares, shape, plan, seed)
    space = Space(trial.graph(UnitCosts(probe=1.0, match=1.0)))
    trial = replace(trial, plan=_ordered(space, plan))
    carried = cost(trial.graph(UnitCosts(match=1.0)), trial.plan).cpu
    return trial if carried <= _MOST_ROWS and space.rate(space.everything) >= 1 else None


def _domain(rng: np.random.Generator, alive: float) -> int:
    """So many keys that a row finds a few partners, or mostly none."""
    return max(2, int(alive / rng.uniform(0.3, 4.0)))


def _conditions(
    rng: np.random.Generator, kind: str, names: Sequence[str], keys: tuple[int, int], alive: float
) -> tuple[list[str], dict[Streams, float]]:
    """A chain of conditions between neighbours, and the selectivity of each."""
    conditions, shares = [], {}
    for i, (left, right) in enumerate(pairwise(names)):
        pair = frozenset({left, right})
        if kind == "bands" and i % 2 == 0:
            width = round(rng.uniform(0.3, 3.0) / alive / 2, 7)
            conditions.append(f"abs({left}.x - {right}.x) <= {width:.7f}")
            shares[pair] = 2 * width - width**2
        else:
            which = i % 2 if kind in ("two keys", "bands") else 0
            conditions.append("{0}.{2} = {1}.{2}".format(left, right, "kl"[which]))
            shares[pair] = 1 / keys[which]
    if kind == "residual":
        # For y's that are uniform, the sum of two is below 0.9 with probability 0.9² / 2.
        conditions.append(f"{names[0]}.y + {names[1]}.y < 0.9")
        shares[frozenset(names[:2])] *= 0.405
    return conditions, shares


def _parts(rng: np.random.Generator, names: Sequence[str], binary: bool) -> list[JTree]:
    """The inputs of a random join of neighbours."""
    inputs = 2 if binary else int(rng.integers(2, len(names) + 1))
    cuts = sorted(rng.choice(np.arange(1, len(names)), inputs - 1, replace=False).tolist())
    parts = [names[a:b] for a, b in pairwise([0, *cuts, len(names)])]
    return [Leaf(part[0]) if len(part) == 1 else join(*_parts(rng, part, binary)) for part in parts]


def _ordered(space: Space, tree: Join) -> Join:
    """The same tree with the orders that the planner would choose."""
    inputs = tuple(_ordered(space, child) if isinstance(child, Join) else child for child in tree.inputs)
    return Join(inputs, choose_probing_orders(space, [space.mask(child.streams) for child in inputs]).orders)


def _figures(what: str, pairs: list[tuple[tuple[float, float], Trial]], aim: float) -> list[Figure]:
    ratios = [predicted / taken for (predicted, taken), _ in pairs]
    errors = [abs(ratio - 1) for ratio in ratios]
    within = sum(error <= aim for error in errors)
    worst, trial = max(
        ((ratio, trial) for ratio, (_, trial) in zip(ratios, pairs, strict=True)),
        key=lambda pair: abs(log(pair[0])),
    )
    low, middle, high = quantiles(ratios, n=4)
    first, error, third = quantiles(errors, n=4)
    return [
        Figure(
            f"{what}, predicted / measured",
            middle,
            low,
            high,
            1 + aim,
            "at most",
            f"worst {worst:.2f}: {trial}",
        ),
        Figure(
            f"{what}, off by",
            error,
            first,
            third,
            aim,
            "at most",
            f"{within} of {len(pairs)} within {aim:.0%}",
        ),
    ]


if __name__ == "__main__":
    print(to_json(measure(quick="--quick" in sys.argv)))
