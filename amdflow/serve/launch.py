"""From an order to a process that can be started: working directory, argv, environment."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from amdflow.serve import container
from amdflow.serve.arguments import API_KEY_VARIABLE
from amdflow.serve.engines.base import Order, Place, ServingEngine


@dataclass(frozen=True)
class Launch:
    """A command ready to start in an empty folder. ``variables`` are added to the inherited environment."""

    argv: list[str]
    variables: dict[str, str]
    work: Path
    container: str = ""
    """Name of the container, when there is one."""


def api_key() -> str:
    """The key clients must show; only ever from the environment."""
    return os.environ.get(API_KEY_VARIABLE, "")


def place_for(order: Order) -> Place:
    """Names as the engine will see them."""
    return container.place_inside() if order.image else Place(str(order.model.folder), order.host, order.port)


def assemble(engine: ServingEngine, order: Order, work: Path) -> Launch:
    """Make the working directory and the command. The directory is new: `-m` puts it on sys.path, and a folder in it could shadow a package."""
    work.mkdir(parents=True)
    engine.prepare(order, work)
    place = place_for(order)
    command = engine.command(order, place)
    variables = engine.variables(order)
    if not order.image:
        return Launch([str(order.python), *command], variables, work)
    name = f"amdflow-{uuid.uuid4().hex[:12]}"
    argv = container.container_argv(
        container.runtime(),
        name=name,
        image=order.image,
        host=order.host,
        port=order.port,
        model=order.model.folder,
        work=work,
        variables=variables,
        command=command,
    )
    return Launch(argv, variables, work, name)


def preview(engine: ServingEngine, order: Order) -> str:
    """The engine's command for ``--dry-run``."""
    words = engine.command(order, place_for(order))
    return " ".join([f"{order.image}: python3" if order.image else str(order.python), *words])
