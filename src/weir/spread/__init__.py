"""Who holds which part of the state, when there are many machines?"""

from weir.spread.atr import AlignedRouting
from weir.spread.clock import Clock, feed
from weir.spread.cover import cheapest_cover
from weir.spread.ctr import CoordinatedRouting
from weir.spread.hardware import Hardware
from weir.spread.link import Link
from weir.spread.matching import Exact, Expected, Matching
from weir.spread.message import Partials, Probe
from weir.spread.model import (
    RingLength,
    Steps,
    StreamLoad,
    bandwidth_needed,
    best_length,
    central_work,
    equal_steps,
    initial_lengths,
    latency,
    output_rate,
    ring_work,
    service_rate,
    uneven_latency,
)
from weir.spread.node import Node
from weir.spread.placement import (
    SHARED,
    Load,
    Outlook,
    Placement,
    Shared,
    by_time,
    cut_anew,
    laid_out,
    levelled,
)
from weir.spread.relocate import How, Resize
from weir.spread.ring import Ring
from weir.spread.stored import Row, Stored
from weir.spread.tally import Tally
from weir.spread.task import Task, cyclic_orders, even_ends

__all__ = [
    "SHARED",
    "AlignedRouting",
    "Clock",
    "CoordinatedRouting",
    "Exact",
    "Expected",
    "Hardware",
    "How",
    "Link",
    "Load",
    "Matching",
    "Node",
    "Outlook",
    "Partials",
    "Placement",
    "Probe",
    "Resize",
    "Ring",
    "RingLength",
    "Row",
    "Shared",
    "Steps",
    "Stored",
    "StreamLoad",
    "Tally",
    "Task",
    "bandwidth_needed",
    "best_length",
    "by_time",
    "central_work",
    "cheapest_cover",
    "cut_anew",
    "cyclic_orders",
    "equal_steps",
    "even_ends",
    "feed",
    "initial_lengths",
    "laid_out",
    "latency",
    "levelled",
    "output_rate",
    "ring_work",
    "service_rate",
    "uneven_latency",
]
