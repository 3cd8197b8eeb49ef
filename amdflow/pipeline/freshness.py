"""Is the last good result still what this plan would give? If not, why: in words a person recognises."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow.files import canonical_json, sha256_file, sha256_text
from amdflow.pipeline.manifest import Artifact, Manifest

_SHOWN = 3
_DIGEST = re.compile(r"[0-9a-f]{64}")


NOTHING_TAKEN = "nothing"
"""In place of a digest: the result depends on no part of what the stage before handed over."""


def digest_taken(taken: str, outputs: str) -> str:
    """The digest that counts: of the part ``taken``, of all ``outputs`` when no part is named, empty for no part at all."""
    return "" if taken == NOTHING_TAKEN else taken or outputs


@dataclass(frozen=True)
class Identity:
    """Everything a result depends on, as flat ``kind:name -> value`` pairs."""

    parts: Mapping[str, str]

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON of the parts."""
        return sha256_text(canonical_json(self.parts))

    @classmethod
    def of(
        cls,
        *,
        stage: str,
        stage_version: int,
        config: Mapping[str, Any],
        inputs: Mapping[str, str],
        tools: Mapping[str, str],
        targets: Sequence[str],
        upstream: str,
    ) -> Identity:
        """``inputs`` maps name to digest; ``upstream`` is the digest of what was handed over, "" for none."""
        parts = {"stage:": f"{stage} {stage_version}", "targets:": ",".join(targets), "upstream:": upstream}
        parts |= {f"config:{key}": canonical_json(value) for key, value in flatten(config).items()}
        parts |= {f"input:{name}": digest for name, digest in inputs.items()}
        parts |= {f"tool:{name}": version for name, version in tools.items()}
        return cls(parts)

    @classmethod
    def recorded(cls, manifest: Manifest) -> Identity:
        """The identity a manifest was made from."""
        return cls.of(
            stage=manifest.stage,
            stage_version=manifest.stage_version,
            config=manifest.config,
            inputs={item.name: item.sha256 for item in manifest.inputs},
            tools=manifest.toolchain,
            targets=manifest.targets,
            upstream=digest_taken(manifest.upstream.taken_digest, manifest.upstream.outputs_digest)
            if manifest.upstream
            else "",
        )

    def changes_since(self, old: Identity) -> list[str]:
        """What differs, named; at most a few of each kind."""
        reasons: list[str] = []
        for kind in ("stage", "config", "input", "tool", "targets", "upstream"):
            names = [
                key.partition(":")[2]
                for key in {**old.parts, **self.parts}
                if key.startswith(f"{kind}:") and old.parts.get(key) != self.parts.get(key)
            ]
            lines = [
                _describe(kind, name, old.parts.get(f"{kind}:{name}"), self.parts.get(f"{kind}:{name}"))
                for name in sorted(names)
            ]
            reasons += lines[:_SHOWN] + (
                [f"and {len(lines) - _SHOWN} more {kind} changes"] if len(lines) > _SHOWN else []
            )
        return reasons


def _changed(noun: str, name: str, old: str | None, new: str | None, *, values: bool) -> str:
    label = f"{noun} {name}".strip()
    if old is None:
        return f"{label} is new"
    if new is None:
        return f"{label} is gone"
    # a digest tells a person nothing
    shown = values and not _DIGEST.fullmatch(old.strip('"'))
    return f"{label} changed: {old[:60]} -> {new[:60]}" if shown else f"{label} changed"


def _describe(kind: str, name: str, old: str | None, new: str | None) -> str:
    if kind == "upstream":
        return "what the stage before handed over changed"
    noun = {"stage": "stage version", "input": "input file"}.get(kind, kind)
    return _changed(noun, name, old, new, values=kind != "input")


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as dotted keys."""
    flat: dict[str, Any] = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping) and item:
            flat |= flatten(item, f"{name}.")
        else:
            flat[name] = item
    return flat


def outputs_digest(manifest: Manifest) -> str:
    """Digest of what a manifest hands over: its outputs' contents and its handoff, not when or where it ran."""
    files = sorted((item.name, item.sha256) for item in manifest.outputs if item.role not in ("report", "log"))
    return sha256_text(canonical_json([files, manifest.handoff]))


@dataclass(frozen=True)
class OutputState:
    """Outputs that are no longer as the manifest says."""

    missing: Sequence[str]
    edited: Sequence[str]


def check_outputs(manifest: Manifest, folder: Path, *, rehash: bool = False) -> OutputState:
    """Compare outputs with the manifest by size and mtime; by content too when those differ or ``rehash`` is set."""
    missing, edited = [], []
    for artifact in manifest.outputs:
        path = folder / artifact.path
        try:
            found = path.stat()
        except OSError:
            missing.append(artifact.path)
            continue
        same = found.st_size == artifact.size and (not artifact.mtime_ns or found.st_mtime_ns == artifact.mtime_ns)
        if (not same or rehash) and sha256_file(path) != artifact.sha256:
            edited.append(artifact.path)
    return OutputState(missing, edited)


def artifact_for(
    path: Path, *, name: str, relative: str, role: str, media_type: str, produced_by: str = ""
) -> Artifact:
    """Describe a file that exists."""
    found = path.stat()
    return Artifact(
        name=name,
        path=relative,
        sha256=sha256_file(path),
        size=found.st_size,
        mtime_ns=found.st_mtime_ns,
        media_type=media_type,
        role=role,
        produced_by=produced_by,
    )
