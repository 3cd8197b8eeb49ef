"""What the steps of a migration came to, for those who sum up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amdflow.migrate.compile_check import UnitResult
from amdflow.migrate.finish import Finished
from amdflow.migrate.inspect_sources import Inspection
from amdflow.migrate.translate import Translation

if TYPE_CHECKING:
    from amdflow.migrate.migration import Migration


@dataclass
class Figures:
    """What the steps of a migration came to."""

    migration: Migration
    translations: Mapping[str, Translation]
    finished: Mapping[str, Finished]
    results: Mapping[str, UnitResult]
    inspection: Inspection
    processes: dict[str, int] = field(default_factory=dict)
