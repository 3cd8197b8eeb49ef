"""The ``kernels`` section of ``amdflow.yaml``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from amdflow.config import Model

Dtype = Literal["bfloat16", "float16", "float32"]


class KernelsConfig(Model):
    """What to build, for which value types."""

    source: str = "kernels"
    """Folder with TileLang kernels, `tiles/` and `shapes.yaml`; what it lacks comes from the kernels shipped with amdflow."""
    kernels: tuple[str, ...] = ()
    """Operators to build; empty means all."""
    dtypes: tuple[Dtype, ...] = ("bfloat16", "float16")
    """Value types to build each kernel for, where the kernel has them."""
    targets: tuple[str, ...] = ()
    """gfx targets; empty means those that migrate was run for, else the project's."""
    baseline: Literal["check", "ignore"] = "check"
    """Whether a kernel that got much worse than `baseline.json` in the source folder fails the build."""
    jobs: Annotated[int, Field(ge=0, le=1024)] = 0
    """Processes at a time; 0 means one a processor core."""
