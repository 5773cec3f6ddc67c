"""`weir run` and `weir explain`: run or explain a job script."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from weir.cli import watch
from weir.errors import QueryError, locate_errors
from weir.script.parse import Script, parse_script
from weir.script.run import explain_script, open_join, start_query

_Job = Annotated[Path, typer.Argument(help="Job script: CREATE STREAM statements and one SELECT ... INTO.")]
_PARTITIONS = typer.Option(min=1, help="Number of partitions of the join.", show_default="number of cores")
_SETTING_HELP = "Spark setting, like spark.master=local[2]; repeatable."
_Count = Annotated[int | None, _PARTITIONS]
_Conf = Annotated[list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help=_SETTING_HELP)]
_Once = Annotated[bool, typer.Option("--once", help="Stop after reading all available rows.")]
_FOLDER = typer.Option(help="Folder of the state; overrides the script's checkpointLocation.")
_Folder = Annotated[str | None, _FOLDER]
_Mermaid = Annotated[bool, typer.Option("--mermaid", help="Print the plan only, as a Mermaid chart.")]


def run(
    job: _Job, once: _Once = False, checkpoint: _Folder = None, partitions: _Count = None, conf: _Conf = None
) -> None:
    """Run a job script on Spark and show the progress of each batch."""
    settings, script, console = parse_settings(conf or ()), read_script(job), Console()
    require_spark()
    from weir.spark.script import session, stop

    rows = results = 0
    unknown = False
    with session(settings) as spark, locate_errors(f"{job}: "), watch.catch_stop_signals() as stopping:
        query = start_query(script, open_join(script, spark, partitions), job.stem, once, checkpoint)
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


def explain(job: _Job, mermaid: _Mermaid = False, partitions: _Count = None, conf: _Conf = None) -> None:
    """Explain a job script: its sources, sink, query and join plan."""
    settings, script = parse_settings(conf or ()), read_script(job)
    require_spark()
    from weir.spark.script import session

    with session(settings) as spark, locate_errors(f"{job}: "):
        text = explain_script(script, spark, job.stem, partitions, mermaid)
    Console().print(text, markup=False, highlight=False, soft_wrap=True)


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
