"""The stages in their order, loaded only when one is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amdflow.pipeline.stage import Stage

ORDER = ("migrate", "kernels", "finetune", "export", "serve")


def load(name: str) -> Stage[Any]:
    """The stage called ``name``: each stage package's only door is its ``stage`` module."""
    stage: Stage[Any] = import_module(f"amdflow.{name}.stage").STAGE
    return stage
