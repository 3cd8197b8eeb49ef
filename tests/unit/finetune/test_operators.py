"""Which custom operators a recipe switches on, what is refused, and what counts for the freshness of a training."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amdflow.content import shipped
from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.finetune.handed import Handed
from amdflow.finetune.operators import (
    Choice,
    Operators,
    everything,
    missing_kernels,
    offer,
    plan_operators,
    take_choice,
)
from amdflow.finetune.recipe import parse_overrides, read_recipe
from amdflow.pipeline.manifest import Upstream, read_manifest
from tests.unit.finetune.workshop import facts

RECIPE = Path("train.yaml")


def choose(given: Any, **more: Any) -> Choice:
    recipe = {"kernels": given, **more}
    choice = take_choice(RECIPE, recipe, facts())
    assert "kernels" not in recipe, "LLaMA-Factory must not see it"
    return choice


def from_text(tmp_path: Path, text: str, *words: str) -> Choice:
    (tmp_path / "train.yaml").write_text(text)
    return take_choice(RECIPE, read_recipe(tmp_path / "train.yaml", parse_overrides(words)), facts())


def test_a_recipe_chooses_by_operator_and_by_module(tmp_path: Path) -> None:
    choice = from_text(tmp_path, 'stage: sft\nkernels: {rms_norm: all, swiglu: "layers.[0-9]*"}\n')
    assert choice.where == {"rms_norm": "all", "swiglu": "layers.[0-9]*"}
    assert not choice.where_possible


@pytest.mark.parametrize("text", ["stage: sft\n", "kernels: off\n", "kernels: 'off'\n", "kernels:\n", "kernels: {}\n"])
def test_nothing_is_on_unless_it_is_said(tmp_path: Path, text: str) -> None:
    assert not from_text(tmp_path, text + "do_train: true\n")


@pytest.mark.parametrize("word", ["all", "on", "'on'", "true"])
def test_all_means_whatever_finds_modules(tmp_path: Path, word: str) -> None:
    choice = from_text(tmp_path, f"kernels: {word}\n")
    assert choice.where == {"rms_norm": "all", "swiglu": "all"}
    assert choice.where_possible
    assert choice == everything(RECIPE, {}, facts())


def test_yamls_truth_values_mean_all_and_off(tmp_path: Path) -> None:
    assert from_text(tmp_path, "kernels: {rms_norm: on, swiglu: off}\n").where == {"rms_norm": "all"}


def test_an_override_wins_as_a_whole_or_for_one_operator(tmp_path: Path) -> None:
    text = "kernels: {rms_norm: all}\n"
    assert from_text(tmp_path, text, "kernels={swiglu: mlp}").where == {"swiglu": "mlp"}
    assert from_text(tmp_path, text, "kernels.swiglu=mlp").where == {"rms_norm": "all", "swiglu": "mlp"}
    assert not from_text(tmp_path, text, "kernels=off")


@pytest.mark.parametrize(
    ("given", "complaint", "hint"),
    [
        ({"rms_nrom": "all"}, r"there is no operator 'rms_nrom' \(did you mean rms_norm\?\)", "rms_norm, swiglu"),
        ({"swiglu": "layers.[0"}, "'layers.[0' is no regular expression: unterminated character set", "a dot stands"),
        ({"swiglu": 3}, "kernels.swiglu must be all, off, or a regular expression of module names, not 3", "swiglu:"),
        ({"swiglu": ["a"]}, "kernels.swiglu must be all, off", ""),
        ({"swiglu": None}, "kernels.swiglu must be all, off", ""),
        (["rms_norm"], "kernels must be all, off, or a mapping of operators", "kernels: {rms_norm: all}"),
        ("some", "kernels must be all, off, or a mapping of operators, not 'some'", ""),
        (1, "kernels must be all, off, or a mapping of operators, not 1", ""),
    ],
)
def test_what_cannot_be_meant_is_refused(given: Any, complaint: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose(given)
    assert caught.value.message.startswith("train.yaml: ")
    assert re.search(complaint.replace("[0'", r"\[0'"), caught.value.message), caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("rival", ["enable_liger_kernel", "use_unsloth"])
def test_two_replacements_of_the_same_modules_are_refused(rival: str) -> None:
    with pytest.raises(UsageError, match=f"{rival} and kernels would both replace"):
        choose("all", **{rival: True})
    assert not choose("off", **{rival: True})


def test_an_environment_without_tilelang_is_told_before_anything_starts() -> None:
    bare = facts(modules=frozenset())
    with pytest.raises(EnvironmentProblem, match="kernels needs TileLang") as caught:
        take_choice(RECIPE, {"kernels": {"rms_norm": "all"}}, bare)
    assert "amdflow toolchain install finetune" in caught.value.hint
    assert "pip install tilelang==" in caught.value.hint
    assert not take_choice(RECIPE, {"kernels": "off"}, bare)
    assert not take_choice(RECIPE, {"kernels": {"rms_norm": False, "swiglu": "off"}}, bare)
    broken = facts(operators={}, operators_problem="ImportError: no such symbol")
    with pytest.raises(EnvironmentProblem, match="ImportError: no such symbol"):
        take_choice(RECIPE, {"kernels": "all"}, broken)


def test_a_cpu_without_a_compiler_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CXX", "CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="need a C\\+\\+ compiler"):
        plan_operators(Choice({"rms_norm": "all"}), facts(), Handed(), tmp_path, "cpu")
    assert plan_operators(Choice(), facts(), Handed(), tmp_path, "cpu") == Operators(target="cpu")


def operators(tmp_path: Path, target: str = "cpu", handed: Handed | None = None, **where: str) -> Operators:
    return plan_operators(Choice(where), facts(), Handed() if handed is None else handed, tmp_path / "kernels", target)


def test_off_leaves_no_trace_in_what_counts(tmp_path: Path) -> None:
    off = operators(tmp_path)
    assert (off.describe(), off.inputs(), off.variables(), dict(off.taken)) == ({}, [], {}, {})


def test_choice_sources_and_tiles_count_and_only_those_in_use(tmp_path: Path) -> None:
    found = operators(tmp_path, swiglu="mlp")
    assert {item.name for item in found.inputs()} == {"kernels/swiglu.py", "kernels/swiglu_backward.py"}
    counted = found.describe()
    assert counted["kernels"] == {"swiglu": "mlp"}
    assert set(counted["kernel_tiles"]["cpu"]) <= {"swiglu", "swiglu_backward"}


def test_the_projects_own_kernels_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "kernels"
    (own / "tiles").mkdir(parents=True)
    (own / "swiglu.py").write_text("KERNEL = {}\n")
    (own / "tiles/cpu.yaml").write_text("swiglu: {block: 7}\nrms_norm: {block_m: 9}\n")
    monkeypatch.setenv("AMDFLOW_KERNELS", "/elsewhere")
    found = operators(tmp_path, swiglu="all")
    assert found.sources()["swiglu"] == own / "swiglu.py"
    assert found.sources()["swiglu_backward"] == shipped("kernels") / "swiglu_backward.py"
    assert found.origins(tmp_path) == {
        "swiglu": "kernels/swiglu.py",
        "swiglu_backward": "kernels/swiglu_backward.py (shipped)",
    }
    assert found.describe()["kernel_tiles"]["cpu"]["swiglu"] == {"block": 7}
    assert "rms_norm" not in found.describe()["kernel_tiles"]["cpu"]
    assert found.variables()["AMDFLOW_KERNELS"] == os.pathsep.join([str(own), "/elsewhere"])


def kernels_manifest(tmp_path: Path, ops: Mapping[str, Mapping[str, str]]) -> Upstream:
    """A manifest of the kernels stage: operator -> target -> content of its code object."""
    outputs = []
    handed: dict[str, Any] = {}
    for op, places in ops.items():
        for target, content in places.items():
            path = f"objects/{target}/{op}-bf16/kernel.co"
            outputs.append({"name": path, "path": path, "sha256": content, "size": 1, "role": "code-object"})
            variants = [{"code_object": path, "symbol": "f"}]
            handed.setdefault(op, {})[target] = {**variants[0], "variants": variants}
    manifest = {
        "schema": "amdflow/manifest", "version": "1.0", "stage": "kernels", "stage_version": 1, "run_id": "r", "attempt": 1,
        "amdflow": "0", "status": "ok", "exit_code": 0, "key": "k", "outputs": outputs,
        "handoff": {"ops": handed, "index": "objects/index.json", "source": "my-kernels", "targets": ["gfx942"]},
        "timing": {"started": "", "ended": "", "seconds": 0.0},
    }  # fmt: skip
    place = tmp_path / "out/kernels/manifest.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(manifest))
    return Upstream(place, read_manifest(place))


ALL_KERNELS = ("rms_norm", "rms_norm_backward", "column_sum", "swiglu", "swiglu_backward")


def test_code_objects_count_where_they_are_loaded_and_nowhere_else(tmp_path: Path) -> None:
    first = Handed.read(kernels_manifest(tmp_path, {name: {"gfx942": "1"} for name in ALL_KERNELS}))
    other = Handed.read(kernels_manifest(tmp_path, {name: {"gfx942": "2"} for name in ALL_KERNELS}))
    assert first.source == "my-kernels"
    on_card = operators(tmp_path, "gfx942", first, swiglu="all")
    assert set(on_card.taken) == {"swiglu", "swiglu_backward"}
    assert on_card.variables()["AMDFLOW_KERNEL_OBJECTS"] == str(tmp_path / "out/kernels/objects")
    assert on_card.taken != operators(tmp_path, "gfx942", other, swiglu="all").taken
    assert operators(tmp_path, "gfx942", first).taken == {}, "a recipe that uses none does not depend on them"
    on_cpu = operators(tmp_path, "cpu", first, swiglu="all")
    assert on_cpu.taken == {}
    assert "AMDFLOW_KERNEL_OBJECTS" not in on_cpu.variables()


def test_what_the_kernels_stage_did_not_build_is_named(tmp_path: Path) -> None:
    ops = {name: {"gfx942": "1"} for name in ALL_KERNELS if name != "column_sum"}
    handed = Handed.read(kernels_manifest(tmp_path, ops))
    both = {"rms_norm": "all", "swiglu": "all"}
    (said,) = missing_kernels(operators(tmp_path, "gfx942", handed, **both), facts(), handed)
    assert said.startswith("rms_norm: the kernels stage built no column_sum for gfx942")
    assert len(missing_kernels(operators(tmp_path, "gfx1100", handed, **both), facts(), handed)) == 2
    (said,) = missing_kernels(operators(tmp_path, "cpu", handed, **both), facts(), handed)
    assert "no column_sum;" in said
    assert missing_kernels(operators(tmp_path, "gfx942", Handed(), **both), facts(), Handed()) == []


def test_what_is_built_and_off_is_offered(tmp_path: Path) -> None:
    handed = Handed.read(kernels_manifest(tmp_path, {name: {"gfx942": "1"} for name in ("swiglu", "swiglu_backward")}))
    said = offer(facts(), handed)
    assert "built and off: swiglu" in said
    assert "`kernels: {swiglu: all}`" in said
    assert "rms_norm" not in said
    assert offer(facts(), Handed()) == ""
