"""Each module has a test file by its name, a story of its package, or tests and doctests that call it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import weir

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "weir"
# Packages that are tested as a whole, through what they give together: each story runs most of their modules.
STORIES = {
    ".": ("test_types.py", "test_readme.py", "query/test_errors.py"),
    "cli": ("test_cli.py",),
    "expr": ("expr/test_expr.py", "expr/test_spark_coverage.py"),
    "kernel": ("oracle/test_relational.py", "oracle/test_row_windows.py", "oracle/test_replan.py"),
    "local": ("local/test_running.py", "local/test_inputs.py", "local/test_arguments.py"),
    "query": ("query/test_sql.py", "query/test_predicate.py", "query/test_errors.py"),
    "runtime": ("runtime/test_progress.py", "testing/test_collect.py"),
    "script": ("script/test_run.py", "script/test_parse.py"),
    "spark": ("spark/test_equals_batch.py", "spark/test_recovery.py", "spark/test_sinks.py"),
    "testing": ("testing/test_collect.py",),
}
# Modules that only tests of other modules reach. This list should shrink.
REACHED_BY_OTHERS = {
    "adapt/describe_decision",
}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py")


def is_tested(module: Path) -> bool:
    place = module.relative_to(SOURCE)
    if (TESTS / place.parent / f"test_{place.stem}.py").exists() or place.parent.as_posix() in STORIES:
        return True
    name = "weir." + ".".join(place.with_suffix("").parts)
    is_called = any(
        re.search(rf"^from {re.escape(name)} import", test.read_text(), re.M) for test in TESTS.rglob("*.py")
    )
    return is_called or ">>>" in module.read_text()


def test_every_module_is_tested() -> None:
    assert len(modules()) > 100
    untested = {
        path.relative_to(SOURCE).with_suffix("").as_posix() for path in modules() if not is_tested(path)
    }
    assert untested <= REACHED_BY_OTHERS


@pytest.mark.parametrize("package", STORIES)
def test_every_story_exists_and_has_tests(package: str) -> None:
    assert (SOURCE / package).is_dir()
    for story in STORIES[package]:
        assert "\ndef test_" in (TESTS / story).read_text(), story


def test_completion_shows_what_the_package_offers() -> None:
    assert set(dir(weir)) == set(weir.__all__)
