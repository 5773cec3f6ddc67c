"""`weir state`: look at the checkpoint of a query, or repair it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from weir.cli.run import parse_settings, require_spark

state = typer.Typer(help="Look at the checkpoint of a query, or repair it.", no_args_is_help=True)

_Location = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The query's checkpointLocation.")]
_SETTING_HELP = "Spark setting, for a checkpoint that is not on a local disk; repeatable."
_Conf = Annotated[list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help=_SETTING_HELP)]
_Yes = Annotated[bool, typer.Option("--yes", help="Repair without asking.")]


@state.command()
def show(checkpoint: _Location, conf: _Conf = None) -> None:
    """Show what a checkpoint holds, and whether it is whole."""
    settings = parse_settings(conf or ())
    require_spark()
    from weir.spark.state_access import look_at_state

    for heading, text in look_at_state(checkpoint, settings):
        _print(f"{heading:<12}{text}")


@state.command()
def repair(checkpoint: _Location, yes: _Yes = False, conf: _Conf = None) -> None:
    """Take a damaged checkpoint back to its newest batch that is whole.

    Deletes what came later: the state, the entries of Spark's logs and the result files. Says what it will
    delete and asks before it does.
    """
    settings = parse_settings(conf or ())
    require_spark()
    from weir.spark.state_access import open_for_repair

    with open_for_repair(checkpoint, settings) as stored:
        planned = stored.plan_repair()
        if planned is None:
            _print(f"nothing to repair: {stored.location.uri} is whole, and the next start goes on")
            return
        for line in stored.describe_repair(planned):
            _print(line)
        if not yes:
            typer.confirm("Repair it?", abort=True)
        stored.apply(planned)
    _print(f"repaired: the next start goes on with batch {planned.batch + 1}")


def _print(text: str) -> None:
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
