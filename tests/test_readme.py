"""The README's Python runs as it stands, block after block in one session."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def test_every_python_block_of_the_readme_runs() -> None:
    blocks = python_blocks(README.read_text())
    assert len(blocks) >= 2
    session: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), session)


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
