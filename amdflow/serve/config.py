"""The ``serve`` section of ``amdflow.yaml``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from amdflow.config import Model
from amdflow.serve.arguments import Arguments, parse_arguments

EngineChoice = Literal["auto", "sglang", "vllm", "transformers"]
DEFAULT_PORT = 30000
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$"


class ServeConfig(Model):
    """Which model to serve, with what, and where."""

    model: str = ""
    """Model directory, exported folder, workdir or manifest.json; empty: what the export stage made."""
    engine: EngineChoice = "auto"
    """Serving engine; auto prefers SGLang, on an AMD GPU where there is one."""
    image: str = ""
    """Container image to take the engine from (docker or podman, AMD GPUs only) instead of an installed environment."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """Address to listen on; anything but loopback is reachable by others."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """TCP port; empty: 30000, or the next free one."""
    served_name: str = ""
    """Name of the model in requests; empty: the exported name or the folder's."""
    profile: str = ""
    """Launch profile from serving/profiles; empty: chosen by the GPU."""
    engine_args: Arguments = Field(default_factory=dict)
    """The engine's own options, passed through: a mapping (name: value) or a list (name=value)."""
    ready_timeout: Annotated[float, Field(gt=0, le=86400)] | None = None
    """Seconds the server may take to become ready; empty: what the profile says."""
    smoke_prompt: str = ""
    """Question the finished server must answer; empty: the export's own, or a general one."""
    keep_running: bool | Literal["attached"] = False
    """Leave the server running: true for good, attached for as long as the command that started it."""

    @field_validator("engine_args", mode="before")
    @classmethod
    def _parse(cls, value: Any) -> Any:
        return parse_arguments(value)

    @field_validator("served_name")
    @classmethod
    def _name(cls, value: str) -> str:
        import re

        if value and not re.fullmatch(_NAME, value):
            raise ValueError("use letters, digits, '.', '_', '-', and '/' between parts")
        return value
