"""``transformers serve``: no throughput to speak of, but it runs nearly anything."""

from __future__ import annotations

from pathlib import Path

from amdflow.serve.arguments import render
from amdflow.serve.engines.base import Order, Place, ServingEngine


class Transformers(ServingEngine):
    """Started with a link to the model in its working directory: a request's ``model`` must equal the argument, so the link is the served name."""

    name = "transformers"
    packages = ("transformers",)
    needs = ("accelerate", "fastapi", "uvicorn", "openai")
    environments = ("serve", "vllm")
    phases = (("Started server process", "starting the server"), ("Application startup complete", "ready"))
    keys = False

    def command(self, order: Order, place: Place) -> list[str]:
        """See the base class."""
        return [
            "-m",
            "transformers.cli.transformers",
            "serve",
            order.served_name,
            "--host",
            place.host,
            "--port",
            str(place.port),
            *render(self.arguments(order)),
        ]

    def variables(self, order: Order) -> dict[str, str]:
        """/v1/models fails where there is no hub cache folder; and the link must not be taken for a hub id."""
        return {"HF_HUB_OFFLINE": "1", **order.variables, "HF_HUB_CACHE": "hub"}

    def prepare(self, order: Order, work: Path) -> None:
        """Make the link and the empty cache."""
        (work / "hub").mkdir()
        link = work / order.served_name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(order.model.folder, target_is_directory=True)
