"""Fuzz what users give: whatever it is, weir answers or raises a `QueryError`, and nothing else."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import pyarrow as pa

import weir
from weir.errors import QueryError
from weir.script.parse import parse_script
from weir_lab.fuzz.arguments import draw_arguments, draw_table, read_source
from weir_lab.fuzz.columns import random_table
from weir_lab.fuzz.statements import draw_script, draw_statement, tear

_ROWS = 6
_CHUNK = 250
_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Input:
    """A call of `weir.sql` or `weir.join`, or a script; the arguments and tables are Python source texts."""

    kind: Literal["sql", "join", "script"]
    text: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many inputs were answered, refused or failed on data; and the failures, each with its input."""

    ends: Counter[str]
    failures: tuple[tuple[Input, str], ...]

    @property
    def count(self) -> int:
        """The number of inputs."""
        return self.ends.total()


def fuzz_inputs(count: int, seed: int, tell: Callable[[str], None]) -> Outcome:
    """Try so many inputs, in two processes."""
    ends, failures = Counter[str](), list[tuple[Input, str]]()
    chunks = [(f"{seed}:{start}", min(_CHUNK, count - start)) for start in range(0, count, _CHUNK)]
    with ProcessPoolExecutor(_PROCESSES) as pool:
        for outcome in pool.map(_try_chunk, *zip(*chunks, strict=True)):
            ends += outcome.ends
            failures += outcome.failures
            tell(f"{ends.total()} of {count} inputs, {len(failures)} end in another error")
    return Outcome(ends, tuple(failures))


def _try_chunk(seed: str, count: int) -> Outcome:
    inputs = draw_inputs(random.Random(seed), count)
    return try_inputs(inputs)


def try_inputs(inputs: Iterable[Input]) -> Outcome:
    """Build what each input asks for, and run what can be built."""
    ends, failures = Counter[str](), list[tuple[Input, str]]()
    for each in inputs:
        end = attempt(each)
        ends[end if end in ("answered", "refused", "failed on data") else "another error"] += 1
        if ends.total() and end not in ("answered", "refused", "failed on data"):
            failures.append((each, end))
    return Outcome(ends, tuple(failures))


def draw_inputs(rng: random.Random, count: int) -> Iterator[Input]:
    """Yield random inputs: statements, whole or torn, calls with odd arguments and tables, and scripts."""
    for _ in range(count):
        match rng.choices(["sql", "torn", "call", "join", "script"], [30, 30, 10, 20, 10])[0]:
            case "sql":
                yield Input("sql", draw_statement(rng))
            case "torn":
                yield Input("sql", tear(rng, draw_statement(rng)))
            case "call":
                tables = {name: draw_table(rng) for name in "tuv"}
                yield Input("sql", draw_statement(rng), {**tables, **draw_arguments(rng, "sql")})
            case "join":
                yield Input(
                    "join", "", {**{name: draw_table(rng) for name in "ab"}, **draw_arguments(rng, "join")}
                )
            case _:
                script = draw_script(rng)
                yield Input("script", tear(rng, script) if rng.random() < 0.6 else script)


def attempt(given: Input) -> str:
    """Return 'answered', 'refused' or 'failed on data', or the error that should not have come."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _run(given)
    except weir.EvaluationError:
        return "failed on data"
    except QueryError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"


def _run(given: Input) -> str:
    if given.kind == "script":
        parse_script(given.text)
        return "answered"
    tables = _ordinary_tables()
    arguments = {name: read_source(text, tables) for name, text in given.arguments.items()}
    if given.kind == "join":
        weir.join(**arguments).collect()
    else:
        weir.sql(given.text, **{**tables, **arguments}).collect()
    return "answered"


@cache
def _ordinary_tables() -> dict[str, pa.Table]:
    rng = random.Random(0)
    return {name: random_table(rng, _ROWS) for name in "tuv"}
