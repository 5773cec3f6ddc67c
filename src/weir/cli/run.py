"""`weir run` and `weir explain`: a job script, running or in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from weir.cli import watch
from weir.errors import QueryError
from weir.script.model import Script
from weir.script.parse import parse_script
from weir.script.run import explanation, open_join, start


def run(
    file: Path,
    once: bool,
    checkpoint: str | None,
    partitions: int | None,
    settings: Mapping[str, str],
    console: Console,
) -> None:
    """Run a job until it is stopped, or for all that is available."""
    script = read_script(file)
    need_spark()
    from weir.spark.script import session, stop

    rows = results = 0
    unknown = False
    with session(settings) as spark, _naming(file), watch.stop_requests() as stopping:
        query = start(script, open_join(script, spark, partitions), file.stem, once, checkpoint)
        with watch.display(console, None if once else script.into.trigger) as show:
            for progress in watch.batches(query, stopping):
                figures = watch.Figures.of(progress)
                rows, results = rows + figures.rows, results + (figures.results or 0)
                unknown = unknown or figures.results is None
                show(figures)
        stop(query)
    ended = "stopped" if stopping.is_set() else "done"
    told = "an unknown number of" if unknown else f"{results:,}"
    console.print(f"{ended}: {rows:,} rows in, {told} results", highlight=False, soft_wrap=True)


def explain(
    file: Path, mermaid: bool, partitions: int | None, settings: Mapping[str, str], console: Console
) -> None:
    """Print what a job asks and how it would be answered, or its plan as a chart."""
    script = read_script(file)
    need_spark()
    from weir.spark.script import session

    with session(settings) as spark, _naming(file):
        text = explanation(script, spark, partitions, mermaid)
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def read_script(file: Path) -> Script:
    """The job in a file."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise QueryError(f"cannot read '{file}': {reason}") from None
    with _naming(file):
        return parse_script(text)


def need_spark(instead: str = "") -> None:
    """Refuse to go on without pyspark."""
    if find_spec("pyspark") is None:
        raise QueryError(f"this needs Spark: pip install 'weir[spark]'{instead}")


def settings_of(pairs: Sequence[str]) -> dict[str, str]:
    """The settings of `--conf key=value` options.

    >>> settings_of(["spark.master=local[2]"])
    {'spark.master': 'local[2]'}
    """
    for pair in pairs:
        if "=" not in pair:
            raise QueryError(f"--conf takes key=value, like spark.master=local[2]; got '{pair}'")
    return dict(pair.split("=", 1) for pair in pairs)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    try:
        yield
    except QueryError as error:
        raise QueryError(f"{file}: {error}") from error.__cause__
