"""How far off a result may be. Standard library only: the engines' processes and amdflow's own read it."""

from __future__ import annotations

ALLOWED = {"float32": 2e-5, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Largest error allowed, relative to the element plus the result's root mean square.

Half types: one rounding of the result and one of what goes into the last product (attention's probabilities), half a
unit in the last place each. float32: a thousand products summed in another order, and the C library's or the GPU's
own exp and division. A kernel's ``slack`` widens it.
"""
