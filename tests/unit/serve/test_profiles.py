"""Launch profiles: the shipped ones are well formed, the right one is chosen, the user's own win."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.config import read_yaml_mapping, validate
from amdflow.content import shipped
from amdflow.errors import UsageError
from amdflow.gpu.targets import TARGETS
from amdflow.serve.arguments import check_arguments
from amdflow.serve.profiles import Profile, choose_profile, profile_files

SHIPPED = sorted((shipped("serving") / "profiles").glob("*.yaml"))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_profiles_are_valid_and_say_what_was_measured(file: Path) -> None:
    profile = validate(Profile, read_yaml_mapping(file), where=str(file))
    assert profile.measured
    assert set(profile.gfx) <= set(TARGETS)
    for engine in (profile.sglang, profile.vllm, profile.transformers):
        check_arguments(engine.args)
    if profile.gfx:
        assert profile.measured.startswith("nothing"), "no AMD GPU was at hand"


def test_no_two_shipped_profiles_claim_one_target() -> None:
    claimed = [gfx for file in SHIPPED for gfx in validate(Profile, read_yaml_mapping(file), where="").gfx]
    assert len(claimed) == len(set(claimed))


@pytest.mark.parametrize(
    ("gfx", "name"),
    [
        (None, "cpu"),
        ("gfx942", "mi300x"),
        ("gfx950", "mi35x"),
        ("gfx1100", "rx7900xtx"),
        ("gfx1151", "strix-halo"),
        ("gfx908", "none"),
    ],
)
def test_the_gpu_chooses(tmp_path: Path, gfx: str | None, name: str) -> None:
    assert choose_profile(tmp_path, "", gfx).name == name


def test_a_named_profile_wins_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    assert choose_profile(tmp_path, "mi300x", None).name == "mi300x"
    with pytest.raises(UsageError, match=r"'mi300' \(did you mean mi300x\?\)") as caught:
        choose_profile(tmp_path, "mi300", None)
    assert "strix-halo" in caught.value.hint


def test_the_workspace_overrides_and_adds(tmp_path: Path) -> None:
    folder = tmp_path / "serving/profiles"
    folder.mkdir(parents=True)
    (folder / "cpu.yaml").write_text(
        "{summary: mine, measured: yes, sglang: {args: {context_length: 99}}}".replace("yes", "'here'")
    )
    (folder / "mi210.yaml").write_text("{summary: MI210, measured: nothing, gfx: [gfx90a]}")
    assert choose_profile(tmp_path, "", None).profile.sglang.args == {"context_length": 99}
    assert choose_profile(tmp_path, "", "gfx90a").name == "mi210"
    assert set(profile_files(tmp_path)) > {"mi210", "cpu", "mi300x"}
    (folder / "mi210.yaml").write_text("{summary: MI210, measured: nothing, gfxs: [gfx90a]}")
    with pytest.raises(UsageError, match=r"mi210\.yaml: unknown key 'gfxs' \(did you mean gfx\?\)"):
        choose_profile(tmp_path, "mi210", None)
