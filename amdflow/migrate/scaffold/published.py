"""What a finished migration left: findings, the migrated tree, the sources it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from amdflow.errors import UsageError
from amdflow.files import sha256_file
from amdflow.findings import Finding
from amdflow.migrate.build_flags import BuildFlags, Flags
from amdflow.migrate.include_graph import IncludeGraph
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.scan import Entry, Tree, scan
from amdflow.migrate.text import decode
from amdflow.pipeline.manifest import MANIFEST_NAME, REPORT_FOLDER, Manifest, Upstream
from amdflow.report import findings_file


@dataclass(frozen=True)
class Published:
    """A migration as its manifest tells it. ``tree`` is the migrated tree, ``source`` the folder that was migrated."""

    manifest: Manifest
    evidence: Path
    tree: Path
    source: Path
    findings: Sequence[Finding]

    @cached_property
    def entries(self) -> Tree:
        """The source tree's files."""
        return scan(self.source, exclude=tuple(self.manifest.config.get("exclude", ())), outputs=[self.evidence])

    @cached_property
    def code(self) -> list[Entry]:
        """Sources and headers that are in the migrated tree, too."""
        return [entry for entry in self.entries.entries if entry.is_code and (self.tree / entry.name).is_file()]

    @cached_property
    def texts(self) -> dict[str, str]:
        """Migrated texts by name."""
        return {entry.name: decode((self.tree / entry.name).read_bytes()) for entry in self.code}

    @cached_property
    def build(self) -> BuildFlags:
        """Flags from the project's build files."""
        return BuildFlags(self.entries)

    @cached_property
    def graph(self) -> IncludeGraph:
        """Includes between the migrated files."""
        return IncludeGraph(self.code, self.texts, self.source, lambda path: self.build.of(path).folders)

    def flags(self, name: str) -> Flags:
        """What the compiler needs to know for a file, with the migrated folders in place of the original ones."""
        flags = self.build.of(self.source / name).merged(Flags(self.graph.closure_folders(name)))
        folders = [(self.tree / name).parent]
        folders += [
            self.tree / folder.relative_to(self.source) if folder.is_relative_to(self.source) else folder
            for folder in flags.folders
        ]
        return replace(flags, folders=tuple(dict.fromkeys(folders)))

    def lines(self, name: str) -> LineMap:
        """Migrated to original lines of a file. Raises UsageError when the original is not the one that was migrated."""
        original = self.source / name
        known = next((item for item in self.manifest.inputs if item.name == name), None)
        if known is not None and known.sha256 != sha256_file(original):
            raise UsageError(
                f"{original} has changed since it was migrated, so the findings' lines no longer fit",
                hint="amdflow migrate brings the findings up to date",
            )
        return LineMap(decode(original.read_bytes()), self.texts[name])


def read_published(manifest: Path, root: Path) -> Published:
    """The migration whose manifest (or its folder) is named. ``root`` is the project's folder.

    Raises UsageError when there is none, when its sources are gone, or when its findings cannot be read.
    """
    path = _manifest_in(manifest)
    upstream = Upstream.read(path, stage="migrate")
    source = root / str(upstream.manifest.config.get("source", ""))
    if not source.is_dir():
        raise UsageError(
            f"the sources of this migration are not at {source}", hint="put them back, or run amdflow migrate again"
        )
    findings, _root = findings_file.read(path.parent / findings_file.NAME)
    tree = upstream.handed(str(upstream.manifest.handoff.get("tree", "hip")))
    return Published(upstream.manifest, path.parent, tree, source.resolve(), findings)


def _manifest_in(path: Path) -> Path:
    for candidate in (path, path / MANIFEST_NAME, path / REPORT_FOLDER / MANIFEST_NAME):
        if candidate.is_file():
            return candidate
    raise UsageError(
        f"no migration has been published in {path}",
        hint="amdflow migrate ./cuda_src, or name its folder with --from-manifest",
    )
