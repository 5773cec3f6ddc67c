"""The commands of `weir`, and how user errors are printed."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console

from weir.cli.demo import run_demo
from weir.cli.run import explain, run
from weir.cli.state import state
from weir.errors import QueryError

app = typer.Typer(
    help="Join many streams inside windows, on Apache Spark or in one process.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run)
app.command("explain")(explain)
app.command("demo")(run_demo)
app.add_typer(state, name="state")


def main() -> None:
    """Run the command line; a user error prints one sentence and exits with code 2."""
    try:
        app()
    except QueryError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"weir {version('weir-streams')}")
        raise typer.Exit


_Version = typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")


@app.callback()
def _options(show_version: Annotated[bool, _Version] = False) -> None:
    pass
