"""Fuzz expressions, joins and inputs, and hold what was found against the aims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from weir.errors import QueryError
from weir_lab.aim import Aim
from weir_lab.fuzz import expressions, inputs, joins

Part = Literal["expressions", "joins", "inputs"]
FULL: Mapping[Part, int] = {"inputs": 200_000, "expressions": 20_000, "joins": 500}
QUICK: Mapping[Part, int] = {"inputs": 400, "expressions": 240, "joins": 12}
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one part found: its aim, all differences, and how often weir refused for which reason."""

    part: Part
    aim: Aim
    differences: tuple[str, ...]
    refused: Mapping[str, int]


def run(sizes: Mapping[Part, int], seed: int, tell: Tell) -> list[Finding]:
    """Fuzz the parts that have a size."""
    findings = [_fuzz_inputs(sizes["inputs"], seed, tell)] if "inputs" in sizes else []
    if "expressions" in sizes or "joins" in sizes:
        spark = _open_spark()
        if "expressions" in sizes:
            findings.append(_fuzz_expressions(spark, sizes["expressions"], seed, tell))
        if "joins" in sizes:
            findings.append(_fuzz_joins(spark, sizes["joins"], seed, tell))
        spark.stop()
    return findings


def choose_sizes(quick: bool, count: int | None, only: str | None) -> dict[Part, int]:
    """Return the number of things to draw for each part; `count` needs `only`."""
    if only is not None and only not in get_args(Part):
        raise QueryError(f"--only is one of {', '.join(get_args(Part))}; got '{only}'")
    if count is not None and only is None:
        raise QueryError("--count needs --only, since the parts differ in size")
    sizes = QUICK if quick else FULL
    return {part: count or size for part, size in sizes.items() if only in (None, part)}


def _fuzz_inputs(count: int, seed: int, tell: Tell) -> Finding:
    outcome = inputs.fuzz_inputs(count, seed, tell)
    ends = ", ".join(f"{number:,} {end}" for end, number in outcome.ends.most_common())
    aim = Aim(
        "inputs: nothing but a QueryError",
        f"{count:,}",
        ends,
        outcome.count >= count and not outcome.failures,
    )
    shown = tuple(f"{given}: {error}" for given, error in outcome.failures)
    return Finding("inputs", aim, shown, {})


def _fuzz_expressions(spark: Any, count: int, seed: int, tell: Tell) -> Finding:
    outcome = expressions.fuzz_expressions(spark, count, seed, tell)
    measured = (
        f"{outcome.compared:,} compared, {len(outcome.differences)} differ, {outcome.failing:,} fail for a "
        f"row, {outcome.refused.total():,} more are refused"
    )
    reached = outcome.compared >= count and not outcome.differences
    aim = Aim("expressions: Spark's values and errors", f"{count:,}", measured, reached)
    return Finding("expressions", aim, outcome.differences, dict(outcome.refused))


def _fuzz_joins(spark: Any, count: int, seed: int, tell: Tell) -> Finding:
    outcome = joins.fuzz_joins(spark, count, seed, tell)
    ends = ", ".join(f"{number} {end}" for end, number in outcome.ends.most_common())
    measured = f"{ends}; {outcome.refused.total()} more are refused"
    reached = outcome.ends.total() >= count and not outcome.differences
    aim = Aim("joins: Spark's rows and errors", f"{count:,}", measured, reached)
    return Finding("joins", aim, outcome.differences, dict(outcome.refused))


def _open_spark() -> Any:
    from weir_lab.spark_session import local_session

    return local_session("weir-lab fuzz", 2, {"spark.driver.memory": "3g", "spark.log.level": "OFF"})


def summarise_refusals(findings: Sequence[Finding], most: int = 12) -> list[tuple[str, int]]:
    """Return the most frequent reasons for which weir refused what was drawn."""
    total = Counter[str]()
    for finding in findings:
        total += Counter(finding.refused)
    return total.most_common(most)
