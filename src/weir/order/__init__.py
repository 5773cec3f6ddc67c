"""Which delta goes first?"""

from weir.order.interleave import ranks
from weir.order.pending import PendingRows
from weir.order.policies import LEARNING, POLICIES, DriverOrder, DriverPolicy, check_policy, order

__all__ = [
    "LEARNING",
    "POLICIES",
    "DriverOrder",
    "PendingRows",
    "ProbePolicy",
    "check_policy",
    "order",
    "ranks",
]
