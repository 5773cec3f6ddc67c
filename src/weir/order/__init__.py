"""Which delta goes first?"""

from weir.order.interleaved import ranks
from weir.order.policies import LEARNING, POLICIES, DriverOrder, Policy, check_policy, order
from weir.order.waiting import Waiting

__all__ = ["LEARNING", "POLICIES", "DriverOrder", "Policy", "Waiting", "check_policy", "order", "ranks"]
