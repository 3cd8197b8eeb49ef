"""The evidence a stage leaves: ``manifest.json``, written last.

Writers forbid unknown fields, readers ignore them; a newer major version is refused.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amdflow.errors import AmdflowError, UsageError
from amdflow.files import resolve_inside, write_atomic

MANIFEST_NAME = "manifest.json"
ATTEMPT_NAME = "attempt.json"
REPORT_FOLDER = "amdflow-report"
"""Where the evidence lies when the payload was delivered elsewhere (``--output``)."""
SCHEMA: Literal["amdflow/manifest"] = "amdflow/manifest"
VERSION = "1.0"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Status(StrEnum):
    """How a stage ended."""

    OK = "ok"
    OK_WITH_FINDINGS = "ok_with_findings"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def good(self) -> bool:
        """Whether the outputs are complete and usable by the next stage."""
        return self in (Status.OK, Status.OK_WITH_FINDINGS)


class Artifact(_Part):
    """One file that went in or came out."""

    name: str
    path: str
    """Relative to the manifest's folder for outputs, to the stage's input root for inputs; ``/`` separators."""
    sha256: str
    size: int
    """Bytes."""
    mtime_ns: int = 0
    media_type: str = "application/octet-stream"
    role: str = "file"
    produced_by: str = ""


class CommandRecord(_Part):
    """One outside program that ran. Secrets are masked."""

    argv: list[str]
    cwd: str = "."
    env: dict[str, str] = Field(default_factory=dict)
    exit_code: int
    seconds: float
    log: str = ""


class UpstreamRecord(_Part):
    """The manifest that fed this stage."""

    stage: str
    path: str
    """Relative to this manifest's folder."""
    sha256: str
    outputs_digest: str
    """Digest of what it handed over, independent of when it ran."""
    taken_digest: str = ""
    """Digest of the part of it that the result depends on; empty when all of it counts, ``nothing`` when no part does."""


class ErrorRecord(_Part):
    """Why a stage did not end well."""

    message: str
    hint: str = ""


class Timing(_Part):
    """UTC times in ISO 8601, duration in seconds."""

    started: str
    ended: str
    seconds: float


class Manifest(_Part):
    """What a stage did, from what, with what, and what came of it."""

    schema_name: Literal["amdflow/manifest"] = Field(default=SCHEMA, alias="schema")
    version: str = VERSION
    stage: str
    stage_version: int
    run_id: str
    attempt: int = 1
    amdflow: str
    status: Status
    exit_code: int
    error: ErrorRecord | None = None
    key: str
    """SHA-256 over stage, stage version, config, input digests, tool versions, targets and what was handed over."""
    inputs: list[Artifact] = Field(default_factory=list)
    outputs: list[Artifact] = Field(default_factory=list)
    config: dict[str, Any] = Field(default_factory=dict)
    config_sources: dict[str, str] = Field(default_factory=dict)
    toolchain: dict[str, str] = Field(default_factory=dict)
    targets: list[str] = Field(default_factory=list)
    environment: dict[str, Any] = Field(default_factory=dict)
    commands: list[CommandRecord] = Field(default_factory=list)
    upstream: UpstreamRecord | None = None
    timing: Timing
    findings: dict[str, int] = Field(default_factory=dict)
    metrics: dict[str, Any] = Field(default_factory=dict)
    handoff: dict[str, Any] = Field(default_factory=dict)
    """What the next stage reads."""
    not_exercised: list[str] = Field(default_factory=list)
    """What could not be tried on this machine, in words."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, populate_by_name=True)

    def save(self, path: Path) -> None:
        """Write atomically."""
        write_atomic(path, json.dumps(self.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n")


def read_manifest(path: Path) -> Manifest:
    """Read and check a manifest. Raises UsageError when it is missing, torn, not one, or from a newer amdflow."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"no manifest at {path}", hint="run the stage that writes it, or name another with --from-manifest"
        ) from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UsageError(
            f"{path} is not a readable manifest: {error}", hint="run the stage that writes it again"
        ) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise UsageError(
            f"{path} is not an amdflow manifest", hint="name the manifest.json that an amdflow stage wrote"
        )
    major = str(data.get("version", "")).partition(".")[0]
    if not major.isdigit() or int(major) > int(VERSION.partition(".")[0]):
        raise UsageError(
            f"{path} has manifest version {data.get('version')}, this amdflow reads up to {VERSION}",
            hint="pip install --upgrade amdflow, or run the stage again with this version",
        )
    try:
        return Manifest.model_validate(data, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(
            f"{path} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}",
            hint="run the stage that writes it again",
        ) from error


def find_manifest(path: Path) -> Manifest | None:
    """The manifest at ``path``, or None when there is none or it is torn (a torn manifest means not done)."""
    try:
        return read_manifest(path)
    except UsageError:
        if path.is_file() and _is_newer(path):
            raise
        return None


def _is_newer(path: Path) -> bool:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return int(str(data["version"]).partition(".")[0]) > int(VERSION.partition(".")[0])
    except (OSError, ValueError, KeyError, TypeError):
        return False


class Upstream:
    """A good manifest of the stage before, and its files."""

    def __init__(self, path: Path, manifest: Manifest, *, root: Path | None = None) -> None:
        if not manifest.status.good:
            raise AmdflowError(
                f"{manifest.stage} did not end well ({manifest.status}): {path}",
                hint=f"amdflow run-all --from {manifest.stage}",
            )
        self.path, self.manifest = path, manifest
        self.root = root or (path.parent.parent if path.parent.name == REPORT_FOLDER else path.parent)
        """Files must lie inside it."""

    @classmethod
    def read(cls, path: Path, *, stage: str = "", root: Path | None = None) -> Upstream:
        """Read a manifest that must be of ``stage`` (when given) and good."""
        manifest = read_manifest(path)
        if stage and manifest.stage != stage:
            raise UsageError(
                f"{path} is the manifest of {manifest.stage}, not of {stage}",
                hint=f"name the manifest.json that `{stage}` wrote",
            )
        return cls(path, manifest, root=root)

    def file(self, artifact: Artifact) -> Path:
        """An output's absolute path; refused when it leaves the workspace, or is gone."""
        return self.handed(artifact.path)

    def handed(self, relative: str) -> Path:
        """The absolute path of something the manifest names; refused when it leaves the workspace, or is gone."""
        path = (self.path.parent / relative).resolve()
        if not path.is_relative_to(self.root.resolve()):
            resolve_inside(self.path.parent, relative, what=str(self.path))
        if not path.exists():
            raise UsageError(
                f"{self.path} names {relative}, which is not there",
                hint=f"make it again: amdflow run-all --from {self.manifest.stage}",
            )
        return path

    def outputs(self, role: str) -> list[Artifact]:
        """Its outputs of one role."""
        return [artifact for artifact in self.manifest.outputs if artifact.role == role]
