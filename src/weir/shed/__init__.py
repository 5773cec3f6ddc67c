"""What is skipped when it does not fit?"""

from weir.shed.allowance import Allowance

__all__ = ["Allowance"]
