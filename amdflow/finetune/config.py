"""The ``finetune`` section of ``amdflow.yaml``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from amdflow.config import Model


class FinetuneConfig(Model):
    """What to train. Everything about the training itself stands in LLaMA-Factory's own file."""

    config: str = ""
    """A LLaMA-Factory training config (YAML, or JSON)."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """LLaMA-Factory keys that win over those in the file (`learning_rate: 1.0e-4`)."""
    processes: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """Training processes on this machine; `auto`: one for each GPU, one on a CPU."""
