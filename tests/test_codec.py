"""Contract: whatever a checkpoint keeps or a task sends reads back as it was, or is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from random import Random
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.codec import from_json, to_json
from weir.kernel.decision import Decision
from weir.order.policies import DriverPolicy
from weir.partition.placement import Placement
from weir.plan.tree import Join, Leaf, hops
from weir.plan.tree import join as tree
from weir.query.windows import RowWindow, TimeWindow
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import TaskReport
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.stats.lag_histogram import LagHistogram

ROOTS = (Manifest, Decision, TaskReport)
PLANS = (
    tree("a", "b"),
    tree("c", tree("a", "b"), orders=[[1], [0]]),
    Join((Join((Leaf("a"), Leaf("b")), ((1,), (0,)), TimeWindow(5)), Leaf("c")), ((1,), (0,))),
    Join((Join((Leaf("a"), Leaf("b")), ((1,), (0,)), RowWindow(9)), Leaf("c")), ((1,), (0,))),
)


def stored(kind: Any, seen: dict[Any, None] | None = None) -> dict[Any, None]:
    """The dataclasses that values of a type may hold, however deep, itself among them."""
    seen = {} if seen is None else seen
    if is_dataclass(kind) and kind not in seen:
        seen[kind] = None
        for hint in get_type_hints(kind).values():
            stored(hint, seen)
    for argument in get_args(kind):
        stored(argument, seen)
    return seen


STORED = list({kind: None for root in ROOTS for kind in stored(root)})


class Generator:
    """Values of any stored type, from its hints, and of those that check themselves as they accept."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def value(self, kind: Any) -> Any:
        if kind in CHECKED:
            return CHECKED[kind](self)
        if is_dataclass(kind):
            return self.fill(kind)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Literal:
            return self.random.choice(arguments)
        if origin in (Union, UnionType):
            return self.value(self.random.choice(arguments))
        if origin is tuple and arguments[-1] is not Ellipsis:
            return tuple(map(self.value, arguments))
        items = range(self.random.randrange(3))
        if origin in (tuple, frozenset):
            return origin(self.value(arguments[0]) for _ in items)
        if origin in (Mapping, dict):
            return {self.value(arguments[0]): self.value(arguments[1]) for _ in items}
        return PLAIN[kind](self.random)

    def fill(self, kind: Any, **known: Any) -> Any:
        hints = get_type_hints(kind)
        drawn = {
            field.name: self.value(hints[field.name]) for field in fields(kind) if field.name not in known
        }
        return kind(**drawn, **known)

    def plan(self) -> Join:
        return self.random.choice(PLANS)

    def allowance(self, plan: Join) -> Allowance:
        probes = {hop: self.random.random() for hop in hops(plan)[: self.random.randrange(4)]}
        ages = {hop: self.value(Ages) for hop in hops(plan)[: self.random.randrange(3)]}
        return self.fill(Allowance, probes=probes, ages=ages, sample=0.25, drop={plan.streams[0]: 0.5})

    def decision(self) -> Decision:
        plan = self.plan()
        order = self.random.choice([plan.streams[::-1], *get_args(DriverPolicy)])
        return self.fill(Decision, plan=plan, driver_order=order, allowance=self.allowance(plan))


PLAIN: dict[Any, Callable[[Random], Any]] = {
    int: lambda random: random.randint(-(2**62), 2**62),
    float: lambda random: random.choice([0.0, 1.0, random.uniform(-1e9, 1e9), 1e-300]),
    str: lambda random: random.choice(["", "a", "(a b)", "Ω ⋉"]),
    bool: lambda random: random.random() < 0.5,
    NoneType: lambda random: None,
}
CHECKED: dict[Any, Callable[[Generator], Any]] = {
    Join: Generator.plan,
    Decision: Generator.decision,
    Allowance: lambda values: values.allowance(values.plan()),
    Ages: lambda values: Ages(values.random.randint(1, 99), frozenset({0, values.random.randint(1, 9)})),
    TimeWindow: lambda values: TimeWindow(values.random.randint(1, 99)),
    RowWindow: lambda values: RowWindow(values.random.randint(1, 99)),
    LagHistogram: lambda values: LagHistogram(-1.0, values.random.random(), (values.random.random(), 2.0)),
    Placement: lambda values: values.random.choice(
        [Placement("hash", 3), Placement("psp", 2, 5, (0, 1), True)]
    ),
}


@pytest.mark.parametrize("kind", STORED, ids=lambda kind: kind.__name__)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_written_reads_back_equal(kind: Any, seed: int) -> None:
    value = Generator(seed).value(kind)
    text = json.dumps(to_json(value), allow_nan=False)
    again = from_json(kind, json.loads(text))
    assert again == value
    assert json.dumps(to_json(again), allow_nan=False) == text


@pytest.mark.parametrize("kind", STORED, ids=lambda kind: kind.__name__)
def test_a_missing_field_is_an_error(kind: Any) -> None:
    written = to_json(Generator(1).value(kind))
    assert set(written) == {field.name for field in fields(kind)}
    for name in written:
        with pytest.raises(ValueError, match=rf"^{kind.__name__} lacks {name}$"):
            from_json(kind, {other: value for other, value in written.items() if other != name})


def test_every_part_of_a_checkpoint_is_tested() -> None:
    names = {kind.__name__ for kind in STORED}
    assert {"SliceEntry", "MigrationState", "Statistics", "Recall", "BatchCounts", "LagHistograms"} <= names
    assert {"Join", "Leaf", "TimeWindow", "Hop", "Allowance", "Ages", "WeightSums", "Thinning"} <= names


def test_a_type_without_json_is_refused() -> None:
    with pytest.raises(TypeError, match="no JSON for values of <class 'object'>"):
        to_json(object())
