"""Code objects that leave the house: export, the loader without TileLang, and the baseline that builds are held against."""

from __future__ import annotations

import json
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from amdflow import process
from amdflow.cli.context import open_context
from amdflow.content import shipped
from amdflow.gpu.targets import target
from amdflow.kernels.compile import host_compiler
from amdflow.kernels.item import SCRIPTS
from tests.conftest import CommandLine

HERE = Path(__file__).parent
INSIDE = HERE / "kernel_objects_inside.py"


@pytest.fixture(scope="module")
def amdflow(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A workspace with a few small kernels built for two targets."""
    folder = tmp_path_factory.mktemp("objects")
    (folder / "kernels").mkdir()
    (folder / "kernels" / "shapes.yaml").write_text("rms_norm: [{hidden: 576}]\nrope: [{head: 64}]\nswiglu: [{}]\n")
    (folder / "amdflow.yaml").write_text(
        "targets: [gfx942, gfx1100]\nkernels: {kernels: [rms_norm, rope, swiglu], dtypes: [bfloat16]}\n"
    )
    command = CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "config-home")})
    said = command("kernels", "build")
    assert said.code == 0, said.err
    return command


@dataclass
class Machine:
    """The kernels environment with the stand-in for HIP's runtime."""

    python: Path
    environment: dict[str, str]
    log: Path

    def run(self, *arguments: str | Path, **more: str) -> tuple[Any, list[list[str]]]:
        """What the script printed, and what the runtime was asked for, word by word."""
        self.log.write_text("")
        done = process.run(
            [str(self.python), str(INSIDE), *map(str, arguments)], env={**os.environ, **self.environment, **more}
        )
        asked = [line.split() for line in self.log.read_text().splitlines()]
        return json.loads(done.stdout.splitlines()[-1]), asked


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    folder = tmp_path_factory.mktemp("hip")
    library = folder / "libamdhip64.so"
    source = HERE / "hip_stand_in" / "hip.c"
    process.run([*host_compiler(None), "-x", "c", "-shared", "-fPIC", "-Wall", str(source), "-o", str(library)])
    engine = open_context(start=folder).toolchain.engine("kernels")
    log = folder / "asked.txt"
    environment = engine.environment() | {"LD_LIBRARY_PATH": str(folder), "HIP_STAND_IN_LOG": str(log)}
    return Machine(engine.python, environment, log)


@pytest.fixture(scope="module")
def exported(amdflow: CommandLine) -> Path:
    said = amdflow("kernels", "export", "--output", "objects", "--arch", "gfx942", "--format", "json")
    assert said.code == 0, said.err
    assert said.json["folder"] == "objects"
    assert {(entry["op"], entry["target"]) for entry in said.json["kernels"]} == {
        ("rms_norm", "gfx942"),
        ("rope", "gfx942"),
        ("swiglu", "gfx942"),
    }
    return amdflow.folder / "objects"


def arguments_of(folder: Path, variant: str, block: bytes) -> dict[str, Any]:
    """The block read back with the code object's own metadata, and the names that the description gives."""
    resources = json.loads((folder / "resources.json").read_text())
    launch = json.loads((folder / "launch.json").read_text())
    forms = {"int32": "<i", "float32": "<f"}
    found = {}
    for (_kind, offset, size), parameter in zip(resources["arguments"], launch["parameters"], strict=True):
        form = "<Q" if parameter["kind"] == "tensor" else forms[parameter["dtype"]]
        assert struct.calcsize(form) == size
        (found[parameter["name"]],) = struct.unpack(form, block[offset : offset + size])
    return found


def test_the_exported_loader_launches_as_the_code_object_expects(
    amdflow: CommandLine, machine: Machine, exported: Path
) -> None:
    """No TileLang, and nothing of amdflow on the path but the exported folder."""
    told, asked = machine.run("alone", exported)
    kinds = [words[0] for words in asked]
    assert kinds == ["load", "function", "launch", "launch", "load", "function", "launch"]
    built = amdflow.folder / "out" / "kernels" / "objects" / "gfx942"
    for words, variant, given, grid in (
        (asked[2], "rms_norm-hidden576-bf16", told["rms_norm"], ["5", "1", "1"]),
        (asked[6], "rope-head64-bf16", told["rope"], ["7", "2", "1"]),
    ):
        launch = json.loads((built / variant / "launch.json").read_text())
        name, numbers, stream, block = words[1], words[2:9], words[9], bytes.fromhex(words[11])
        assert name == launch["symbol"]
        assert numbers == [*grid, *map(str, launch["threads"]), str(launch["dynamic_lds"])]
        assert stream == "0x5eed"
        found = arguments_of(built / variant, variant, block)
        assert found == {key: pytest.approx(given[key], rel=1e-6) for key in found}
    again = arguments_of(built / "rms_norm-hidden576-bf16", "rms_norm", bytes.fromhex(asked[3][11]))
    assert (again["rows"], again["x"]) == (2, told["rms_norm"]["x"])


def test_tensors_that_do_not_fit_never_reach_the_card(machine: Machine, exported: Path) -> None:
    told, _asked = machine.run("alone", exported)
    for error, part in zip(
        told["errors"],
        ("x is float32", "w has extent 77", "without gaps", "takes 6 arguments (x, w, y, rstd, eps, offset), not 2"),
        strict=True,
    ):
        assert error.startswith("ObjectError")
        assert part in error


def test_operators_take_a_prebuilt_kernel_where_one_fits(amdflow: CommandLine, machine: Machine) -> None:
    """Straight from what the build left, without an export; what does not fit is said when TileLang is missing."""
    objects = amdflow.folder / "out" / "kernels" / "objects"
    told, asked = machine.run("operators", PYTHONPATH=str(SCRIPTS), AMDFLOW_KERNEL_OBJECTS=str(objects))
    place = objects / "gfx942" / "swiglu-bf16" / "kernel.co"
    assert told["origins"] == {"swiglu bfloat16 lanes=8 act=silu": f"ahead of time: {place}"}
    assert [words[0] for words in asked] == ["load", "function", "launch"]
    assert "no swiglu bfloat16 lanes=8 act=gelu for gfx942: TileLang is not installed here" in told["error"]
    assert "has none that fits" in told["error"]


def test_tilelangs_own_cache_can_be_filled_without_a_card(amdflow: CommandLine) -> None:
    """The second process finds what the first has compiled: it compiles nothing, as on a machine with that GPU."""
    choice = ("--kernel", "swiglu", "--arch", "gfx942")
    fill = ("kernels", "export", *choice, "--output", "for-cache", "--jit-cache", "tilelang-cache")
    assert amdflow(*fill).code == 0
    (entry,) = (amdflow.folder / "tilelang-cache").glob("*/*/kernels/*/executable.so")
    written = entry.stat().st_mtime_ns
    context = open_context(start=amdflow.folder)
    engine = context.toolchain.engine("kernels")
    jobs = amdflow.folder / "jobs.json"
    module = str(shipped("kernels") / "swiglu.py")
    jobs.write_text(json.dumps([{"id": "a", "module": module, "target": "gfx942", "build": {"dtype": "bfloat16"}}]))
    no_compiler = {"ROCM_PATH": str(amdflow.folder), "TILELANG_CACHE_DIR": str(amdflow.folder / "tilelang-cache")}
    environment = {**os.environ, **engine.environment(), **no_compiler}
    done = process.run([str(engine.python), str(SCRIPTS / "prefill.py"), str(jobs)], env=environment)
    assert json.loads(done.stdout.splitlines()[-1])["ok"], done.output
    assert entry.stat().st_mtime_ns == written


def test_an_export_replaces_an_export_and_nothing_else(amdflow: CommandLine, exported: Path) -> None:
    assert amdflow("kernels", "export", "--output", "objects", "--kernel", "swiglu").code == 0
    assert not (exported / "gfx942" / "rms_norm-hidden576-bf16").exists()
    assert {path.name for path in exported.iterdir()} == {"gfx942", "gfx1100", "index.json", "objects.py"}
    (amdflow.folder / "mine").mkdir(exist_ok=True)
    (amdflow.folder / "mine" / "file").write_text("")
    said = amdflow("kernels", "export", "--output", "mine")
    assert said.code == 2
    assert "holds no export" in said.err
    (amdflow.folder / "mine" / "index.json").write_text('{"a": 1}')
    said = amdflow("kernels", "export", "--output", "mine")
    assert said.code == 2
    assert (amdflow.folder / "mine" / "file").is_file()
    said = amdflow("kernels", "export", "--output", "out/kernels")
    assert said.code == 2
    assert "holds the build that is exported" in said.err
    assert not [path.name for path in amdflow.folder.iterdir() if path.name.startswith(".mine")]
    said = amdflow("kernels", "export", "--arch", "gfx90a")
    assert said.code == 2
    assert "nothing was built for target 'gfx90a', only for gfx1100, gfx942" in said.err
    assert "amdflow kernels build --arch gfx90a" in said.err


def test_a_damaged_code_object_is_not_exported(amdflow: CommandLine, exported: Path) -> None:
    damaged = next((amdflow.folder / "out").glob("kernels/**/gfx942/swiglu-bf16/kernel.co"))
    whole = damaged.read_bytes()
    try:
        damaged.write_bytes(b"garbage")
        said = amdflow("kernels", "export", "--output", "objects", "--kernel", "swiglu")
    finally:
        damaged.write_bytes(whole)
    assert said.code == 1
    assert "is not what kernels build left there" in said.err
    assert "amdflow kernels build --force" in said.err
    assert (exported / "index.json").is_file()


def test_what_kernels_say_they_move_is_the_size_of_their_tensors(machine: Machine) -> None:
    """Within a factor: tables are read in part, and what is float32 in memory is float64 in the references."""
    argv = [str(machine.python), str(HERE / "kernel_work_inside.py"), str(shipped("kernels"))]
    environment = {**os.environ, **machine.environment, "PYTHONPATH": str(SCRIPTS)}
    ratios = json.loads(process.run(argv, env=environment).stdout.splitlines()[-1])
    assert {"gemm", "rope", "attention_backward", "cross_entropy"} <= set(ratios)
    for kernel, found in ratios.items():
        assert all(0.5 < ratio < 2 for ratio in found), f"{kernel}: {found}"


def test_targets_of_one_generation_get_the_same_source(machine: Machine, tmp_path: Path) -> None:
    """What `kernels build` lowers once for all of them; taken from a kernel that uses matrix instructions."""
    module = str(shipped("kernels") / "gemm.py")
    tiles = {"block_m": 64, "block_n": 64, "block_k": 32, "threads": 128}
    jobs = [
        {
            "id": arch,
            "module": module,
            "target": arch,
            "build": {"dtype": "bfloat16", **tiles},
            "folder": str(tmp_path / arch),
        }
        for arch in ("gfx90a", "gfx942", "gfx1100", "gfx1151", "gfx1201")
    ]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    argv = [str(machine.python), str(SCRIPTS / "lower.py"), str(tmp_path / "jobs.json")]
    process.run(argv, env={**os.environ, **machine.environment})
    sources: dict[str, set[str]] = {}
    for job in jobs:
        text = (tmp_path / str(job["id"]) / "source.hip").read_text()
        sources.setdefault(target(str(job["id"])).dialect, set()).add(text)
    assert {dialect: len(texts) for dialect, texts in sources.items()} == {"CDNA": 1, "RDNA3": 1, "RDNA4": 1}
    assert sources["RDNA3"] != sources["RDNA4"]


def test_a_kernel_worse_than_its_baseline_fails_by_name_until_it_is_accepted(amdflow: CommandLine) -> None:
    path = amdflow.folder / "kernels" / "baseline.json"
    build = ("kernels", "build", "--kernel", "rms_norm", "--arch", "gfx942")
    assert amdflow(*build, "--update-baseline").code == 0
    good = path.read_text()
    assert json.loads(good)["kernels"]["gfx942/rms_norm-hidden576-bf16"]["spills"] == 0
    assert amdflow(*build).code == 0
    path.write_text(re.sub(r'"waves": (\d+)', lambda found: f'"waves": {4 * int(found[1])}', good))
    said = amdflow(*build)
    assert said.code == 1
    assert re.search(r"gfx942/rms_norm-hidden576-bf16: \d+ waves a SIMD, \d+ before", said.err)
    assert "amdflow kernels build --update-baseline" in said.err
    path.write_text(path.read_text().replace('"rocm": "', '"rocm": "0.'))  # with other tools it is a finding
    said = amdflow(*build, "--format", "json")
    assert said.code == 0, said.err
    report = json.loads((amdflow.folder / "out" / "kernels" / "kernels.json").read_text())
    assert [finding["id"] for finding in report["findings"]] == ["AMF2004"]
    assert amdflow(*build, "--update-baseline").code == 0
    assert path.read_text() == good


def test_the_repositorys_kernels_are_as_good_as_their_baseline(tmp_path: Path) -> None:
    """The kernel that was hardest to fit, on all six targets; a job of its own in CI holds the rest."""
    folder = CommandLine(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "config-home")})
    (tmp_path / "kernels").symlink_to(shipped("kernels"))
    said = folder(
        *("kernels", "build", "--kernel", "attention", "--dtype", "bfloat16"),
        *("--arch", "gfx90a,gfx942,gfx950,gfx1100,gfx1151,gfx1201", "--format", "json"),
    )
    assert said.code == 0, said.err
    assert said.json["metrics"]["kernels"]
    named = json.loads((shipped("kernels") / "baseline.json").read_text())["kernels"]
    for row in said.json["metrics"]["kernels"]:
        assert any(name.startswith(f"{row['target']}/{row['kernel']}-") for name in named)
