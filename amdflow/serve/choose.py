"""Which engine, from which environment, on which device, and why."""

from __future__ import annotations

from dataclasses import dataclass

from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.serve.engines import ENGINES
from amdflow.serve.engines.base import ServingEngine
from amdflow.toolchain import Engine, Toolchain


@dataclass(frozen=True)
class Choice:
    """An engine that can be started. ``environment`` is None for a container image."""

    engine: ServingEngine
    environment: Engine | None
    device: str
    version: str
    reason: str

    @property
    def on_gpu(self) -> bool:
        """Whether it computes on a GPU."""
        return self.device != "cpu"


def choose_engine(wanted: str, toolchain: Toolchain, *, gpu: str | None) -> Choice:
    """``wanted`` or, for ``auto``, the first of SGLang, vLLM and transformers that is there; one that uses the GPU comes first.

    ``gpu`` is the gfx target of this machine's AMD GPU, if any. Raises EnvironmentProblem when none can be started.
    """
    names = list(ENGINES) if wanted == "auto" else [wanted]
    found: list[Choice] = []
    absent: list[str] = []
    for name in names:
        choice, problem = _look(ENGINES[name], toolchain, gpu)
        if choice:
            found.append(choice)
        absent.append(problem)
    if not found:
        hint = (
            "amdflow toolchain install serve"
            if wanted != "vllm"
            else "name the Python of an environment with vllm in amdflow.yaml: toolchain: {vllm: /path/bin/python}"
        )
        what = "no serving engine is installed" if wanted == "auto" else f"{wanted} is not installed"
        raise EnvironmentProblem(f"{what}: {'; '.join(filter(None, absent))}", hint=hint)
    return min(found, key=lambda choice: not choice.on_gpu) if gpu else found[0]


def choose_image(wanted: str, image: str, *, gpu: str | None) -> Choice:
    """An engine inside a container image. Raises UsageError when there is no AMD GPU for it."""
    name = next((name for name in ENGINES if name in image.lower()), "sglang") if wanted == "auto" else wanted
    if name == "transformers":
        raise UsageError("no container image serves with transformers", hint="--engine sglang or --engine vllm")
    if gpu is None:
        raise UsageError(
            f"image {image} needs an AMD GPU, and this machine has none that ROCm can use",
            hint="amdflow doctor; or leave --image away to serve on the CPU",
        )
    return Choice(ENGINES[name], None, "rocm", image, f"image {image}")


def _look(engine: ServingEngine, toolchain: Toolchain, gpu: str | None) -> tuple[Choice | None, str]:
    problem = ""
    for name in engine.environments:
        try:
            environment = toolchain.engine(name)
        except EnvironmentProblem as error:
            problem = problem or f"{engine.name}: {error.message}"
            continue
        package = next((package for package in engine.packages if package in environment.packages), None)
        lacking = [need for need in engine.needs if need not in environment.packages]
        if package is None or lacking:
            problem = (
                f"{engine.name}: the {name} environment has no {', '.join(lacking) if package else engine.packages[0]}"
            )
            continue
        device = environment.device if gpu or environment.device == "cuda" else "cpu"
        return Choice(engine, environment, device, environment.packages[package], _reason(engine, device, gpu)), ""
    return None, problem


def _reason(engine: ServingEngine, device: str, gpu: str | None) -> str:
    if device == "rocm":
        return f"{engine.name} for the AMD GPU ({gpu})"
    if device == "cuda":
        return f"{engine.name} for an NVIDIA GPU"
    because = (
        f"its environment has no ROCm build, so the {gpu} GPU stays unused" if gpu else "this machine has no AMD GPU"
    )
    return f"{engine.name} on the CPU: {because}"
