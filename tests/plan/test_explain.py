"""CPU and memory in words, as reasons and explain show them."""

from __future__ import annotations

from math import inf

from weir.plan.explain import compare_usage, describe_usage
from weir.plan.limits import Limits


def test_what_is_infinite_is_any() -> None:
    assert describe_usage(inf, inf) == "any CPU, any memory"
    assert describe_usage(0.12, inf).startswith("CPU 12") and describe_usage(inf, 3 << 20).startswith(
        "any CPU"
    )


def test_only_what_is_limited_is_compared() -> None:
    both = compare_usage(0.71, 3 << 20, Limits(0.4, 2 << 20))
    assert both.startswith("CPU 71") and "(limit 40" in both and " and state " in both
    assert " and " not in compare_usage(0.71, 3 << 20, Limits(0.4, inf))
    assert compare_usage(0.71, 3 << 20, Limits(inf, inf)) == describe_usage(0.71, inf).split(",")[0]
