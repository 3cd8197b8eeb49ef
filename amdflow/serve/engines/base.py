"""What a serving engine is to amdflow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from amdflow.serve.arguments import Arguments
from amdflow.serve.model import ServedModel
from amdflow.serve.profiles import EngineSettings

KEY_FILE = "key.yaml"


@dataclass(frozen=True)
class Order:
    """What to start, and where."""

    model: ServedModel
    served_name: str
    host: str
    port: int
    python: Path | None
    """The interpreter of the engine's environment; None: the engine comes in a container image."""
    device: str
    """``cpu``, ``rocm`` or ``cuda``."""
    version: str
    settings: EngineSettings
    """What the launch profile gives this engine."""
    extra: Arguments = field(default_factory=dict)
    """The user's own engine options, over the profile's."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables the engine's environment needs."""
    image: str = ""
    key: str = field(default="", repr=False)
    """What clients must show; empty: nothing is asked for."""

    @property
    def variables(self) -> dict[str, str]:
        """What the engine's environment and the profile want set."""
        return {**self.environment, **self.settings.env}

    @property
    def arguments(self) -> Arguments:
        """Profile and user options, the user's last."""
        return {**self.settings.args, **self.extra}


@dataclass(frozen=True)
class Place:
    """Names as the engine's process sees them: they differ inside a container."""

    model: str
    host: str
    port: int


class ServingEngine(ABC):
    """One engine. Stateless."""

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    """Distributions that are this engine; the first one found counts."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Other distributions it cannot serve without."""
    environments: ClassVar[tuple[str, ...]]
    """Toolchain environments it may be in, the best first."""
    health: ClassVar[str] = "/health"
    phases: ClassVar[tuple[tuple[str, str], ...]] = ()
    """(text in a log line, what it means), in order."""
    limits: ClassVar[tuple[str, ...]] = ()
    """Options that hold a context length and must not exceed the model's."""
    keys: ClassVar[bool] = True
    """Whether it can ask for an API key."""

    @abstractmethod
    def command(self, order: Order, place: Place) -> list[str]:
        """The argv after the interpreter."""

    @abstractmethod
    def variables(self, order: Order) -> dict[str, str]:
        """Environment of the engine's process, besides what is inherited: at least :attr:`Order.variables`."""

    @abstractmethod
    def prepare(self, order: Order, work: Path) -> None:
        """Put what the engine wants to find into its working directory, which is empty."""

    def arguments(self, order: Order) -> Arguments:
        """The options, with the profile's context length held within the model's."""
        merged = order.arguments
        for name in self.limits:
            value = merged.get(name)
            if (
                name not in order.extra
                and order.model.context
                and isinstance(value, int)
                and value > order.model.context
            ):
                merged[name] = order.model.context
        return merged
