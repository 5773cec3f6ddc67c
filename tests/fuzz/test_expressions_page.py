"""docs/expressions.md says of every function where it works: as the kernel's table has it today."""

from __future__ import annotations

import re
from pathlib import Path

from weir.expr.build import callable_names
from weir_lab.fuzz.functions import known_to_kernel

PAGE = Path(__file__).parents[2] / "docs" / "expressions.md"
# Functions that only weir has, or that Spark lists under no name of their own.
OWN = {"cosine"}


def read_sections() -> dict[str, set[str]]:
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {part.splitlines()[0]: set(re.findall(r"`([^`]+)`", part)) for part in sections}


def test_the_page_knows_what_the_kernel_knows() -> None:
    sections = read_sections()
    across = sections["On one stream and across streams"]
    assert {name for name in across if not known_to_kernel(name)} == set()
    assert {name for name in sections["On one stream"] if known_to_kernel(name)} == set()
    listed = set().union(*sections.values())
    assert set(callable_names()) - across - OWN == set(callable_names()) - listed - OWN


def test_most_functions_work_on_one_stream() -> None:
    sections = read_sections()
    working = sections["On one stream and across streams"] | sections["On one stream"]
    assert len(working) >= 370
    assert {"date_format", "regexp_replace", "lower", "from_json"} <= working
