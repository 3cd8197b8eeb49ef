"""Everything that is decided and checked before a server starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow.errors import UsageError
from amdflow.files import portable
from amdflow.gpu.machine import Gpu, gpus
from amdflow.pipeline.stage import Input, Plan, Request
from amdflow.serve.arguments import check_arguments
from amdflow.serve.checks import check_memory, is_loopback, pick_port
from amdflow.serve.choose import Choice, choose_engine, choose_image
from amdflow.serve.config import ServeConfig
from amdflow.serve.engines.base import Order
from amdflow.serve.launch import api_key, preview
from amdflow.serve.model import ServedModel, inspect, locate
from amdflow.serve.profiles import ChosenProfile, choose_profile
from amdflow.serve.smoke import DEFAULT_PROMPT
from amdflow.serve.trouble import Trouble, load_trouble

_GIB = 1 << 30


@dataclass(frozen=True)
class Job:
    """The work order."""

    choice: Choice
    order: Order
    profile: ChosenProfile
    prompt: str
    ready_timeout: float
    keep: bool | str
    """As in :class:`~amdflow.serve.config.ServeConfig`."""
    remarks: tuple[str, ...]
    """What the user should be warned of."""
    trouble: tuple[Trouble, ...]


def make_plan(request: Request[ServeConfig]) -> Plan:
    """Resolve model, engine, profile and port. Raises UsageError or EnvironmentProblem for what cannot work."""
    config = request.config
    check_arguments(config.engine_args)
    model = inspect(locate(request.path(config.model) if config.model else None, request.upstream))
    gpu = _best_gpu()
    choice = _choose(request, gpu)
    used = gpu if choice.on_gpu else None
    profile = choose_profile(request.root, config.profile, used.gfx if used else None)
    order, remark = _order(config, model, choice, profile)
    memory = check_memory(
        model.weights.bytes, gpu_bytes=int(used.memory_gb * _GIB) if used and used.memory_gb else None
    )
    job = Job(
        choice=choice,
        order=order,
        profile=profile,
        prompt=config.smoke_prompt or model.probe or DEFAULT_PROMPT,
        ready_timeout=config.ready_timeout or profile.profile.ready_timeout,
        keep=config.keep_running,
        remarks=tuple(filter(None, (remark, memory, *_warnings(config, choice, profile, gpu)))),
        trouble=load_trouble(request.root),
    )
    inputs = [Input(file.name, file, "model") for file in model.small_files]
    return Plan(
        _key(job, request.root),
        inputs,
        {choice.engine.name: choice.version},
        _steps(job, request.root),
        job=job,
        from_upstream=not config.model,
    )


def _best_gpu() -> Gpu | None:
    """The AMD GPU with the most memory: a machine's integrated one is seldom meant."""
    return max(gpus(), key=lambda gpu: gpu.memory_gb, default=None)


def _choose(request: Request[ServeConfig], gpu: Gpu | None) -> Choice:
    config, gfx = request.config, gpu.gfx if gpu else None
    if config.image:
        return choose_image(config.engine, config.image, gpu=gfx)
    return choose_engine(config.engine, request.toolchain, gpu=gfx)


def _order(config: ServeConfig, model: ServedModel, choice: Choice, profile: ChosenProfile) -> tuple[Order, str]:
    if api_key() and not choice.engine.keys:
        raise UsageError(
            f"{choice.engine.name} cannot ask clients for a key, and AMDFLOW_API_KEY is set",
            hint="unset AMDFLOW_API_KEY, or use --engine sglang",
        )
    port, remark = pick_port(config.host, config.port)
    environment = choice.environment
    order = Order(
        model=model,
        served_name=config.served_name or model.name,
        host=config.host,
        port=port,
        python=environment.python if environment else None,
        device=choice.device,
        version=choice.version,
        settings=getattr(profile.profile, choice.engine.name),
        extra=config.engine_args,
        environment=environment.environment() if environment else {},
        image=config.image,
        key=api_key(),
    )
    return order, remark


def _warnings(config: ServeConfig, choice: Choice, profile: ChosenProfile, gpu: Gpu | None) -> Sequence[str]:
    found = []
    if not is_loopback(config.host):
        guard = "" if api_key() else ", and it asks for no key (export AMDFLOW_API_KEY=... sets one)"
        found.append(f"{config.host} can be reached from other machines{guard}")
    if profile.profile.gfx and not choice.on_gpu:
        found.append(
            f"profile {profile.name} is for {', '.join(profile.profile.gfx)}, and {choice.engine.name} runs on the CPU"
        )
    if gpu is not None and not choice.on_gpu:
        found.append(f"the {gpu.gfx} GPU is not used: {choice.reason}")
    return found


def _key(job: Job, root: Path) -> dict[str, Any]:
    order = job.order
    return {
        "model": portable(order.model.folder, root),
        "served_name": order.served_name,
        "engine": job.choice.engine.name,
        "device": order.device,
        "profile": job.profile.name,
        "host": order.host,
        "arguments": job.choice.engine.arguments(order),
        "variables": dict(order.settings.env),
        "image": order.image,
        "prompt": job.prompt,
        "keep_running": job.keep,
    }


def _steps(job: Job, root: Path) -> list[str]:
    order, model = job.order, job.order.model
    last = {"True": "leave it running", "False": "stop it again"}.get(str(job.keep), "serve until Ctrl-C or SIGTERM")
    return [
        f"serve {portable(model.folder, root)} ({model.architecture}, {model.weights.bytes / 1e9:.2f} GB) as {order.served_name}",
        f"with {job.choice.reason}; profile {job.profile.name} ({job.profile.reason})",
        f"run {preview(job.choice.engine, order)}",
        f"wait up to {job.ready_timeout:g} s for {order.host}:{order.port}{job.choice.engine.health}",
        f"ask: {job.prompt}",
        last,
        *(f"remark: {remark}" for remark in job.remarks),
    ]
