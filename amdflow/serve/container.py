"""An engine out of a ROCm container image: the argv of docker or podman around the engine's own."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from amdflow.errors import EnvironmentProblem
from amdflow.serve.engines.base import Place

MODEL = "/model"
WORK = "/amdflow"
_INSIDE = 30000
_ROCM = (
    "--device=/dev/kfd",
    "--device=/dev/dri",
    "--group-add",
    "video",
    "--ipc=host",
    "--shm-size",
    "16G",
    "--cap-add=SYS_PTRACE",
    "--security-opt",
    "seccomp=unconfined",
)


def runtime() -> str:
    """The path of docker or podman. Raises EnvironmentProblem when there is neither."""
    found = shutil.which("docker") or shutil.which("podman")
    if not found:
        raise EnvironmentProblem(
            "serving from an image needs docker or podman, and neither is on PATH",
            hint="install one; or leave --image away to use an installed engine",
        )
    return found


def place_inside() -> Place:
    """Model, address and working directory as the container sees them."""
    return Place(MODEL, "0.0.0.0", _INSIDE)  # noqa: S104 - inside the container; the port is published on the host's chosen address only


def container_argv(
    program: str,
    *,
    name: str,
    image: str,
    host: str,
    port: int,
    model: Path,
    work: Path,
    variables: Mapping[str, str],
    command: Sequence[str],
) -> list[str]:
    """The argv that runs ``python3 command`` in the image, in the foreground, with the AMD GPUs and the model (read-only)."""
    words = [program, "run", "--rm", "--name", name, *_ROCM, "--publish", f"{host}:{port}:{_INSIDE}"]
    words += ["--volume", f"{model}:{MODEL}:ro", "--volume", f"{work}:{WORK}", "--workdir", WORK]
    for key in variables:
        # by name only: the value is read from the client's environment, so that no key shows on the command line
        words += ["--env", key]
    return [*words, image, "python3", *command]


def removal_argv(program: str, name: str) -> list[str]:
    """The argv that ends and removes the container, for when its client was killed."""
    return [program, "rm", "--force", name]
