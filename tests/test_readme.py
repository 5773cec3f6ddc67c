"""The README's Python runs as it stands, block after block in one session."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import weir

README = Path(__file__).parents[1] / "README.md"


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def run_blocks() -> dict[str, Any]:
    blocks = python_blocks(README.read_text())
    assert len(blocks) >= 2
    session: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), session)
    return session


def test_every_python_block_of_the_readme_runs() -> None:
    assert run_blocks()["result"].num_rows == 2


@pytest.mark.parametrize("convert", [pl.from_arrow, pa.Table.to_pandas], ids=["polars", "pandas"])
def test_the_readmes_tables_may_be_polars_or_pandas(convert: Callable[[pa.Table], Any]) -> None:
    session = run_blocks()
    tables = {name: convert(session[name]) for name in ("nyc", "tokyo", "london")}
    condition = "nyc.symbol = tokyo.symbol AND tokyo.symbol = london.symbol AND tokyo.price > nyc.price"
    select = "tokyo.symbol, nyc.price AS bought, tokyo.price AS sold"
    found = weir.join(on=condition, within="10 seconds", select=select, **tables).to_arrow()
    assert found.sort_by("bought").to_pydict() == session["result"].to_pydict()


def test_every_local_link_of_the_readme_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_every_make_target_of_the_documents_exists() -> None:
    root = README.parent
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), flags=re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"^make ([a-z]+)", (root / name).read_text(), flags=re.MULTILINE))
        assert named
        assert named <= targets
