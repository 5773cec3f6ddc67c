"""CPU and memory in words, as reasons and explain show them."""

from __future__ import annotations

from math import inf

from weir.plan.explain import describe_usage


def test_what_is_infinite_is_any() -> None:
    assert describe_usage(inf, inf) == "any CPU, any memory"
    assert describe_usage(0.12, inf).startswith("CPU 12") and describe_usage(inf, 3 << 20).startswith(
        "any CPU"
    )
