"""What all pictures of the lab have in common."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def label(panel: Axes, what: str, over: str) -> None:
    """Name the axes, and leave out what is not read."""
    panel.set_xlabel(over)
    panel.set_ylabel(what)
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, file: Path) -> None:
    """Write a picture and forget it."""
    figure.savefig(file, dpi=110)
    plt.close(figure)
