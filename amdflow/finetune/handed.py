"""What the kernels stage hands over, as far as a training reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from amdflow.files import canonical_json, sha256_text
from amdflow.pipeline.manifest import Upstream


class _Variant(BaseModel):
    code_object: str


class _Artifact(BaseModel):
    variants: list[_Variant] = []


class _Handoff(BaseModel):
    ops: dict[str, dict[str, _Artifact]] = {}
    source: str = ""
    index: str = ""


@dataclass(frozen=True)
class Handed:
    """Kernels that are built: for which targets, and where they lie."""

    ops: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Kernel -> targets."""
    source: str = ""
    """The project's folder of kernels, relative to the workspace; empty when it is not known."""
    objects: Path | None = None
    """The folder of code objects, with an index that the operators' launcher reads."""
    _digests: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def read(cls, upstream: Upstream | None) -> Handed:
        """From the kernels stage's manifest; nothing when there is none."""
        if upstream is None:
            return cls()
        handoff = _Handoff.model_validate(upstream.manifest.handoff, extra="ignore")
        contents = {artifact.path: artifact.sha256 for artifact in upstream.manifest.outputs}
        digests = {}
        for kernel, places in handoff.ops.items():
            for target, artifact in places.items():
                paths = [variant.code_object for variant in artifact.variants]
                digests[kernel, target] = sha256_text(canonical_json([[path, contents.get(path)] for path in paths]))
        objects = (upstream.path.parent / handoff.index).resolve().parent if handoff.index else None
        ops = {kernel: sorted(places) for kernel, places in sorted(handoff.ops.items())}
        return cls(ops, handoff.source, objects, digests)

    def digests(self, kernels: Sequence[str], target: str) -> dict[str, Any]:
        """What the code objects of some kernels contain, by kernel."""
        return {kernel: self._digests[kernel, target] for kernel in kernels if (kernel, target) in self._digests}
