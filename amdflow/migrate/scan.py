"""Every file of a source tree, sorted into what is translated and what is carried over."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from amdflow.errors import UsageError

_UNIT_ENDINGS = frozenset({".cu", ".cpp", ".cc", ".cxx", ".c"})
_HEADER_ENDINGS = frozenset({".h", ".hpp", ".hh", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp", ".tcc", ".impl"})
_MAKEFILE = re.compile(r"(?:gnu)?makefile(?:\.(?!md$|txt$|html$)\w+)?|.+[._-]makefile|.+\.(?:mk|mak)", re.IGNORECASE)
_CMAKE_FILE = re.compile(r"CMakeLists\.txt(?:\.in)?|.+\.cmake(?:\.in)?")
_OTHER_BUILD_FILES = re.compile(
    r"setup\.py|compile_commands\.json|meson\.build|pyproject\.toml|BUILD(?:\.bazel)?|WORKSPACE|MODULE\.bazel|.+\.bzl"
)
_PRIVATE = ".amdflow"
_VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})
_OUTPUT_MARK = b"amdflow/manifest"


class Kind(StrEnum):
    """What a file is to the migration."""

    SOURCE = "source"
    HEADER = "header"
    BUILD = "build"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: its path relative to the tree (``/`` separators), where it is, what it is, its size in bytes, when it was changed (ns)."""

    name: str
    path: Path
    kind: Kind
    size: int
    changed: int = 0

    @property
    def is_code(self) -> bool:
        """Whether it is a source or a header."""
        return self.kind in (Kind.SOURCE, Kind.HEADER)


@dataclass
class Tree:
    """What a scan found. ``left_out`` maps a path to the reason it was not taken; ``links`` maps links that are kept as links to their target."""

    root: Path
    entries: list[Entry] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


def classify(name: str) -> Kind:
    """By its name alone."""
    path = PurePosixPath(name)
    ending = path.suffix.lower()
    if is_cmake_file(path.name) or is_makefile(path.name) or _OTHER_BUILD_FILES.fullmatch(path.name):
        return Kind.BUILD
    if ending in _UNIT_ENDINGS:
        return Kind.SOURCE
    return Kind.HEADER if ending in _HEADER_ENDINGS else Kind.OTHER


def is_makefile(name: str) -> bool:
    """By a file's name without its folder."""
    return _MAKEFILE.fullmatch(name) is not None


def is_cmake_file(name: str) -> bool:
    """By a file's name without its folder; templates of CMake files too."""
    return _CMAKE_FILE.fullmatch(name) is not None


def scan(root: Path, *, exclude: Sequence[str] = (), outputs: Sequence[Path] = ()) -> Tree:
    """Walk ``root``. Earlier amdflow outputs, ``outputs`` and version control are left out, and named.

    Raises UsageError for a missing or empty folder, a file that cannot be read, a name that is not UTF-8.
    """
    if not root.exists():
        raise UsageError(f"no such folder: {root}", hint="name the folder that holds the CUDA sources")
    if not root.is_dir():
        raise UsageError(f"{root} is a file, not a folder", hint=f"name its folder: amdflow migrate {root.parent}")
    tree = Tree(root)
    _walk(tree, root, tuple(exclude), frozenset(path.resolve() for path in outputs))
    tree.entries.sort(key=lambda entry: entry.name)
    if not any(entry.is_code for entry in tree.entries):
        found = f"it holds {len(tree.entries)} other files" if tree.entries else "it is empty"
        raise UsageError(
            f"no C++ or CUDA sources in {root}: {found}",
            hint="name the folder that holds the .cu, .cuh, .cpp or .h files",
        )
    return tree


def _walk(tree: Tree, folder: Path, exclude: tuple[str, ...], outputs: frozenset[Path]) -> None:
    pending = [folder]
    while pending:
        current = pending.pop()
        try:
            children = sorted(os.scandir(current), key=lambda child: child.name)
        except PermissionError as error:
            raise UsageError(
                f"cannot read the folder {current}: permission denied",
                hint=f"chmod u+rx '{current}', or leave it out with migrate.exclude",
            ) from error
        for child in children:
            path = Path(child.path)
            name = path.relative_to(tree.root).as_posix()
            if any(fnmatch(name, pattern) or fnmatch(child.name, pattern) for pattern in exclude):
                tree.left_out[_shown(name)] = "excluded by migrate.exclude"
                continue
            _check_name(name, tree.root)
            if _is_folder(child):
                reason = _why_not_enter(tree, child, path, name, outputs)
                if reason:
                    tree.left_out[name] = reason
                elif not child.is_symlink():
                    pending.append(path)
            else:
                _take(tree, path, name)


def _is_folder(child: os.DirEntry[str]) -> bool:
    """Whether it is a folder, links followed; a link that leads to itself is none."""
    try:
        return child.is_dir(follow_symlinks=True)
    except OSError:
        return False


def _why_not_enter(tree: Tree, child: os.DirEntry[str], path: Path, name: str, outputs: frozenset[Path]) -> str:
    if child.is_symlink():
        target = path.resolve()
        if not target.is_relative_to(tree.root.resolve()):
            tree.links[name] = str(target)
            return f"a link to a folder outside the tree ({target}): kept as a link, not read"
        if os.path.isabs(os.readlink(path)):
            return "a link to a folder by its absolute path; that folder is taken where it lies"
        tree.links[name] = os.readlink(path)
        return ""
    if child.name in _VERSION_CONTROL:
        return "version control data"
    if child.name == _PRIVATE or path.resolve() in outputs or is_output(path):
        return "an earlier amdflow output"
    return ""


def is_output(folder: Path) -> bool:
    """Whether amdflow wrote this folder (its manifest lies in it, or in its amdflow-report)."""
    for manifest in (folder / "manifest.json", folder / "amdflow-report" / "manifest.json"):
        try:
            with manifest.open("rb") as stream:
                if _OUTPUT_MARK in stream.read(200):
                    return True
        except OSError:
            continue
    return False


def _shown(name: str) -> str:
    """The name with bytes that are not UTF-8 written as escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def _check_name(name: str, root: Path) -> None:
    shown = _shown(name)
    if shown != name:
        pattern = re.sub(r"[\ud800-\udfff]+", "*", name)
        raise UsageError(
            f"a file name in {root} is not UTF-8: {shown}",
            hint=f"rename it, or leave it out: amdflow migrate --exclude '{pattern}'",
        )


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def _take(tree: Tree, path: Path, name: str) -> None:
    try:
        found = path.stat()
    except OSError:
        if path.is_symlink():
            tree.links[name] = os.readlink(path)
        tree.left_out[name] = "a link to nothing" if path.is_symlink() else "it vanished while the tree was read"
        return
    if path.is_symlink() and not _inside(path, tree.root):
        tree.links[name] = os.path.realpath(path)
        tree.left_out[name] = f"a link to a file outside the tree ({tree.links[name]}): kept as a link, not read"
        return
    if not stat.S_ISREG(found.st_mode):
        tree.left_out[name] = "not a regular file"
    elif not os.access(path, os.R_OK):
        raise UsageError(
            f"cannot read {path}: permission denied", hint=f"chmod u+r '{path}', or leave it out with migrate.exclude"
        )
    else:
        tree.entries.append(Entry(name, path, classify(name), found.st_size, found.st_mtime_ns))
