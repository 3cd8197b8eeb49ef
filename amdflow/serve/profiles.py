"""Launch profiles and the list of known trouble: data in ``serving/``, the user's own over the shipped ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from amdflow.config import Model, nearest, read_yaml_mapping, validate
from amdflow.content import shipped
from amdflow.errors import UsageError
from amdflow.serve.arguments import Arguments

CPU = "cpu"


class EngineSettings(Model):
    """What a profile gives one engine."""

    args: Arguments = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)


class Profile(Model):
    """Launch settings for one kind of machine."""

    summary: str
    measured: str
    """What of it has been measured, and where; or that nothing has."""
    gfx: tuple[str, ...] = ()
    """gfx targets it is chosen for; none: no GPU."""
    image: str = ""
    """A container image with an engine for these targets."""
    ready_timeout: Annotated[float, Field(gt=0)] = 600.0
    """Seconds until ready; first starts compile kernels."""
    sglang: EngineSettings = EngineSettings()
    vllm: EngineSettings = EngineSettings()
    transformers: EngineSettings = EngineSettings()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChosenProfile:
    """A profile, its name, where it was read, and why it."""

    name: str
    profile: Profile
    file: Path | None
    reason: str


def profile_files(root: Path) -> dict[str, Path]:
    """Profile name -> file; those in the workspace's ``serving/profiles`` win."""
    folders = (shipped("serving") / "profiles", root / "serving" / "profiles")
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.yaml"))}


def choose_profile(root: Path, wanted: str, gfx: str | None) -> ChosenProfile:
    """The profile called ``wanted``; or the one for the GPU's target (None: no GPU).

    A target no profile knows gets the engines' own defaults. Raises UsageError for an unknown name or a bad file.
    """
    files = profile_files(root)
    if wanted:
        if wanted not in files:
            raise UsageError(
                f"no launch profile is called {wanted!r}{nearest(wanted, tuple(files))}",
                hint=f"profiles: {', '.join(sorted(files))}",
            )
        return ChosenProfile(wanted, _load(files[wanted]), files[wanted], "asked for")
    if gfx is None and CPU in files:
        return ChosenProfile(CPU, _load(files[CPU]), files[CPU], "no GPU in use")
    for name, file in files.items():
        profile = _load(file)
        if gfx in profile.gfx:
            return ChosenProfile(name, profile, file, f"this machine's GPU is {gfx}")
    return ChosenProfile(
        "none",
        Profile(summary="the engine's own defaults", measured="nothing"),
        None,
        f"no profile is for {gfx or 'the CPU'}",
    )


def _load(file: Path) -> Profile:
    return validate(Profile, read_yaml_mapping(file), where=str(file))
