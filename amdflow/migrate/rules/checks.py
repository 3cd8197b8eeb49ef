"""Detection that patterns cannot express, by the name that rules give it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amdflow.migrate.rules import branch_checks, capability_checks, kernel_checks, memory_checks, warp_checks
from amdflow.migrate.syntax import Source

CHECKS: dict[str, Callable[[Source], Iterator[tuple[int, str]]]] = {
    check.__name__: check
    for check in (
        branch_checks.kernel_gone,
        capability_checks.capability_decides,
        capability_checks.capability_refuses,
        kernel_checks.block_of_one_warp_wide,
        kernel_checks.device_launch,
        kernel_checks.launch_bounds_minimum,
        kernel_checks.small_block,
        kernel_checks.vector_operator,
        kernel_checks.warp_synchronous_tail,
        memory_checks.device_pointer_arithmetic,
        memory_checks.float_atomic,
        memory_checks.narrow_float_atomic,
        memory_checks.shared_of_two_types,
        memory_checks.spin_on_memory,
        warp_checks.broadcast_without_width,
        warp_checks.lanes_meet_at_two_places,
        warp_checks.narrow_mask,
        warp_checks.narrow_scan,
        warp_checks.shared_per_warp,
        warp_checks.shuffle_tree,
        warp_checks.warp_size_constant,
    )
}
