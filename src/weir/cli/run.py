"""`weir run` and `weir explain`: run or explain a job script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from weir.cli import watch
from weir.errors import QueryError, locate_errors
from weir.script.model import Script
from weir.script.parse import parse_script
from weir.script.run import explain_script, open_join, start_query


def run(
    file: Path,
    once: bool,
    checkpoint: str | None,
    partitions: int | None,
    settings: Mapping[str, str],
    console: Console,
) -> None:
    """Run a job until it is stopped, or with `once` until it has read all available rows."""
    script = read_script(file)
    require_spark()
    from weir.spark.script import session, stop

    rows = results = 0
    unknown = False
    with session(settings) as spark, locate_errors(f"{file}: "), watch.catch_stop_signals() as stopping:
        query = start_query(script, open_join(script, spark, partitions), file.stem, once, checkpoint)
        with watch.display_batches(console, None if once else script.sink.trigger) as show:
            for progress in watch.follow_batches(query, stopping):
                figures = watch.BatchFigures.of(progress)
                rows, results = rows + figures.rows, results + (figures.results or 0)
                unknown = unknown or figures.results is None
                show(figures)
        stop(query)
    ended = "stopped" if stopping.is_set() else "done"
    count = "an unknown number of" if unknown else f"{results:,}"
    console.print(f"{ended}: {rows:,} rows in, {count} results", highlight=False, soft_wrap=True)


def explain(
    file: Path, mermaid: bool, partitions: int | None, settings: Mapping[str, str], console: Console
) -> None:
    """Print the explanation of a job, or only its plan as a Mermaid chart."""
    script = read_script(file)
    require_spark()
    from weir.spark.script import session

    with session(settings) as spark, locate_errors(f"{file}: "):
        text = explain_script(script, spark, partitions, mermaid)
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def read_script(file: Path) -> Script:
    """Read and parse the job script in a file."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise QueryError(f"cannot read '{file}': {reason}") from None
    with locate_errors(f"{file}: "):
        return parse_script(text)


def require_spark(instead: str = "") -> None:
    """Raise if pyspark is not installed; `instead` names an alternative."""
    if find_spec("pyspark") is None:
        raise QueryError(f"this needs Spark: pip install 'weir-streams[spark]'{instead}")


def parse_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Parse the values of `--conf key=value` options.

    >>> parse_settings(["spark.master=local[2]"])
    {'spark.master': 'local[2]'}
    """
    for pair in pairs:
        if "=" not in pair:
            raise QueryError(f"--conf takes key=value, like spark.master=local[2]; got '{pair}'")
    return dict(pair.split("=", 1) for pair in pairs)
