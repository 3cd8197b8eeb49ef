"""SGLang."""

from __future__ import annotations

import json
from pathlib import Path

from amdflow.serve.arguments import render
from amdflow.serve.engines.base import KEY_FILE, Order, Place, ServingEngine


class SGLang(ServingEngine):
    """``python -m sglang.launch_server``. Drains on SIGTERM to its leader only: its scheduler must not get one."""

    name = "sglang"
    packages = ("sglang",)
    environments = ("serve",)
    limits = ("context-length",)
    phases = (
        ("server_args=", "starting the scheduler"),
        ("Init parallel begin", "importing the model code"),
        ("Load weight begin", "loading weights"),
        ("Load weight end", "allocating the KV cache"),
        ("Capture cuda graph begin", "capturing graphs"),
        ("Capture target decode", "capturing graphs"),
        ("Uvicorn running", "warming up"),
        ("fired up", "ready"),
    )

    def command(self, order: Order, place: Place) -> list[str]:
        """See the base class."""
        words = [
            "-m",
            "sglang.launch_server",
            "--model-path",
            place.model,
            "--served-model-name",
            order.served_name,
            "--host",
            place.host,
            "--port",
            str(place.port),
        ]
        # its --config file keeps the key off the command line, which every user of the machine can read
        return words + render(self.arguments(order)) + (["--config", KEY_FILE] if order.key else [])

    def variables(self, order: Order) -> dict[str, str]:
        """See the base class."""
        return order.variables

    def prepare(self, order: Order, work: Path) -> None:
        """Write the key file, readable by this user only. JSON text is YAML text too."""
        if order.key:
            file = work / KEY_FILE
            file.touch(mode=0o600)
            file.write_text(json.dumps({"api-key": order.key}), encoding="utf-8")
