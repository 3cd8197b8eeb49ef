"""The ``migrate`` section of ``amdflow.yaml``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from amdflow.config import Model
from amdflow.findings import Severity

FailOn = Literal["none", "silent", "compile", "link", "slow", "note"]
_WORST_FIRST = tuple(Severity)


class MigrateConfig(Model):
    """What to migrate and how strict to be."""

    source: str = ""
    """Folder with the CUDA sources, relative to the workspace."""
    exclude: tuple[str, ...] = ()
    """Glob patterns of paths (relative to the source folder) to leave out entirely."""
    jobs: int = Field(default=0, ge=0, le=1024)
    """How many processes at once; 0 means one for each core."""
    compile: bool = True
    """Compile every translation unit for every target after translation."""
    native_warp: bool = False
    """Leave warp functions as wide as the hardware's waves (64 lanes on CDNA) instead of logical warps of 32 lanes."""
    extra_args: tuple[str, ...] = ()
    """Compiler flags that every file gets, in translation and in compile checks (-I, -D, -std, ...)."""
    annotate: bool = False
    """Put a comment at the line of each finding into the migrated sources (findings that are notes excepted)."""
    fail_on: FailOn = "none"
    """Exit 3 when a finding is this bad or worse (silent is worst, then compile, link, slow, note)."""

    def is_over_limit(self, severity: Severity) -> bool:
        """Whether a finding of this severity reaches the level that the user does not allow."""
        return self.fail_on != "none" and _WORST_FIRST.index(severity) <= _WORST_FIRST.index(Severity(self.fail_on))
