"""Put a finished result where people look for it, so that nobody ever sees half of one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from amdflow.errors import UsageError
from amdflow.files import sync_folder
from amdflow.pipeline.freshness import artifact_for
from amdflow.pipeline.manifest import MANIFEST_NAME, Artifact, Manifest, find_manifest
from amdflow.pipeline.stage import Output
from amdflow.pipeline.workspace import Destination


def describe_outputs(
    outputs: Sequence[Output], scratch: Path, payload: Path, destination: Destination
) -> list[Artifact]:
    """Artifacts for files in ``scratch``, with the paths they will have once published."""
    described = []
    for output in outputs:
        inside = output.path.relative_to(scratch).as_posix()
        relative = inside
        if destination.delivered and output.path.is_relative_to(payload):
            relative = f"../{output.path.relative_to(payload).as_posix()}"
        described.append(
            artifact_for(
                output.path,
                name=output.name or inside,
                relative=relative,
                role=output.role,
                media_type=output.guess_media_type(),
                produced_by=output.produced_by,
            )
        )
    return described


def publish(
    scratch: Path, payload: Path, manifest: Manifest, destination: Destination, *, keep_added: bool = False
) -> None:
    """Move a complete result into place; the manifest comes last (or with everything else, in one rename).

    ``keep_added`` takes files that people added to the payload over into the new one (a delivered payload keeps them
    anyway).
    """
    if destination.delivered:
        _deliver(scratch, payload, manifest, destination)
    else:
        if keep_added:
            _carry_added(payload, destination)
        manifest.save(scratch / MANIFEST_NAME)
        _swap(scratch, destination.evidence, destination.private / "trash" / f"{destination.stage}-{manifest.run_id}")


def _carry_added(payload: Path, destination: Destination) -> None:
    """Links, or copies, so that the old place has them until the swap is done."""
    previous = find_manifest(destination.manifest)
    if previous is None:
        return
    ours = {destination.name_in_payload(artifact.path) for artifact in previous.outputs}
    for folder, _folders, names in os.walk(destination.payload):
        for path in (Path(folder, name) for name in names):
            relative = path.relative_to(destination.payload)
            target = payload / relative
            if relative.as_posix() in ours or os.path.lexists(target):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, target, follow_symlinks=False)
            except OSError:  # a file system without hard links
                shutil.copy2(path, target, follow_symlinks=False)


def recover(destination: Destination) -> None:
    """Finish a swap that was cut off: a scratch folder with a good manifest is complete, since the manifest is written last."""
    trash = destination.private / "trash"
    for scratch in sorted(destination.private.glob(f"scratch/{destination.stage}-*")):
        manifest = find_manifest(scratch / MANIFEST_NAME)
        if manifest is not None and manifest.status.good and not destination.delivered:
            _swap(scratch, destination.evidence, trash / f"{destination.stage}-{manifest.run_id}")
    leftovers = sorted(trash.glob(f"{destination.stage}-*"))
    if leftovers and not destination.evidence.exists():
        os.replace(leftovers.pop(), destination.evidence)
    for folder in leftovers:
        shutil.rmtree(folder)


def _swap(scratch: Path, place: Path, trash: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    trash.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        os.replace(place, trash)
    os.replace(scratch, place)
    sync_folder(place.parent)
    if trash.exists():
        shutil.rmtree(trash)


def check_foreign(paths: Iterable[str], destination: Destination, *, force: bool) -> None:
    """With ``--output``: refuse to overwrite files that an earlier amdflow run did not write.

    ``paths`` are as in a manifest. Raises UsageError naming the first ones.
    """
    if not destination.delivered or force:
        return
    previous = find_manifest(destination.manifest)
    ours = {artifact.path for artifact in previous.outputs} if previous else set()
    foreign = [path for path in paths if path not in ours and os.path.lexists(destination.evidence / path)]
    if foreign:
        shown = ", ".join(path.removeprefix("../") for path in foreign[:3])
        raise UsageError(
            f"{destination.payload} already holds {len(foreign)} of the files to be written, and not from amdflow: {shown}",
            hint="choose an empty --output, or overwrite them with --force",
        )


def _deliver(scratch: Path, payload: Path, manifest: Manifest, destination: Destination) -> None:
    previous = find_manifest(destination.manifest)
    destination.manifest.unlink(missing_ok=True)
    kept = {artifact.path for artifact in manifest.outputs}
    for artifact in manifest.outputs:
        source = (
            payload / artifact.path.removeprefix("../") if artifact.path.startswith("../") else scratch / artifact.path
        )
        target = destination.evidence / artifact.path
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(source, target)
    for link in [path for path in payload.rglob("*") if path.is_symlink()]:
        target = destination.payload / link.relative_to(payload)
        if not os.path.lexists(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(link, target)
    for artifact in previous.outputs if previous else ():
        if artifact.path not in kept:
            (destination.evidence / artifact.path).unlink(missing_ok=True)
    manifest.save(destination.manifest)
    shutil.rmtree(scratch)
