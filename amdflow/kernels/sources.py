"""Finds kernels and what they declare, without importing them: their files are read, not run.

A kernel is a Python file with a top-level literal ``KERNEL = {...}`` and a function ``build``. The user's folder is
looked at first, the shipped one second; a file of the same name in the user's wins.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from amdflow.config import Model, nearest, validate
from amdflow.content import shipped
from amdflow.errors import UsageError
from amdflow.files import sha256_file
from amdflow.kernels.config import Dtype

DEFAULT_SOURCE = "kernels"


class Declaration(Model):
    """The ``KERNEL`` literal of a kernel's file."""

    op: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    summary: str
    matrix: bool
    """Does its work run on the matrix units?"""
    dtypes: tuple[Dtype, ...] = Field(min_length=1)
    sizes: dict[str, str] = Field(default_factory=dict)
    """Sizes fixed at build time, each with what it means."""
    typical: dict[str, Any] = Field(default_factory=dict)
    """Sizes given at launch in a training or a server that is worth the trouble; what ``work`` is asked about."""
    replaces: tuple[str, ...] = ()
    """Kinds of work in migrated sources that it can stand for."""
    fast_math: bool = False
    """On NVIDIA, exponentials and divisions by the hardware's own approximations: a softmax is rounded to 16 bits anyway."""
    slack: float = Field(default=1.0, ge=1.0, le=8.0)
    """How often the usual error it may make: rows of unlike scale, or more than one rounded intermediate."""


class Case(Model):
    """One numeric test: what to build with, and the sizes given at launch."""

    build: dict[str, Any]
    run: dict[str, Any]


@dataclass(frozen=True)
class Kernel:
    """One kernel's file and what it declares."""

    path: Path
    name: str
    """Path for people: relative to the folder that holds ``kernels/``."""
    declaration: Declaration
    cases: tuple[Case, ...]
    settings: tuple[str, ...]
    """Names of ``build``'s tile settings."""
    sha256: str
    defaults: Mapping[str, int | bool] = field(default_factory=dict)
    """What ``build`` takes for each tile setting that no file sets."""
    space: Mapping[str, tuple[int | bool, ...]] = field(default_factory=dict)
    """The values that ``kernels tune`` tries for each setting: the ``TUNE`` literal."""
    size_defaults: Mapping[str, Any] = field(default_factory=dict)
    """What the sizes are when nothing fixes them; those without a default are not in it."""

    @property
    def op(self) -> str:
        """The operator."""
        return self.declaration.op


@dataclass(frozen=True)
class Folders:
    """Where kernels, tiles and shapes are looked for; the first that has a file wins."""

    folders: tuple[Path, ...]

    def find(self, relative: str) -> list[Path]:
        """Every file called that, the most important last."""
        return [folder / relative for folder in reversed(self.folders) if (folder / relative).is_file()]


def open_folders(source: Path, *, given: str) -> Folders:
    """The user's folder (when it exists) before the shipped one. Raises UsageError when ``given`` is missing and no default."""
    if source.is_file():
        raise UsageError(f"kernels.source: {source} is a file", hint="name the folder that holds the kernels")
    if not source.is_dir() and given != DEFAULT_SOURCE:
        raise UsageError(
            f"kernels.source: no such folder: {source}", hint="leave it away to build the kernels shipped with amdflow"
        )
    folders = [folder.resolve() for folder in (source, shipped(DEFAULT_SOURCE)) if folder.is_dir()]
    return Folders(tuple(dict.fromkeys(folders)))


def find_kernels(folders: Folders, wanted: tuple[str, ...] = ()) -> list[Kernel]:
    """The kernels called ``wanted`` (all when empty), by name. Raises UsageError for a name no kernel has and for a broken file."""
    files: dict[str, Path] = {}
    for folder in folders.folders:
        for path in sorted(folder.glob("*.py")):
            files.setdefault(path.name, path)
    found: dict[str, Kernel] = {}
    for path in files.values():
        kernel = read_kernel(path)
        if kernel is None:
            continue
        if kernel.op in found:
            raise UsageError(
                f"{path} and {found[kernel.op].path} both declare the kernel {kernel.op!r}", hint="rename one of them"
            )
        found[kernel.op] = kernel
    if not found:
        raise UsageError(
            f"no kernels in {', '.join(map(str, folders.folders))}",
            hint="a kernel is a .py file with KERNEL = {...} and build()",
        )
    for name in wanted:
        if name not in found:
            raise UsageError(
                f"no kernel called {name!r}{nearest(name, list(found))}", hint=f"kernels: {', '.join(sorted(found))}"
            )
    return [found[name] for name in sorted(found) if not wanted or name in wanted]


def read_kernel(path: Path) -> Kernel | None:
    """What the file declares; None when it declares no kernel. Raises UsageError naming file and line."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, filename=str(path))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from error
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno}: not valid Python: {error.msg}", hint="fix that line") from error
    literals = {
        name: _literal(node, name, path)
        for node in tree.body
        for name in ("KERNEL", "CASES", "TUNE")
        if _assigns(node, name)
    }
    if "KERNEL" not in literals:
        return None
    build = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build"), None)
    if build is None:
        raise UsageError(
            f"{path} declares KERNEL but has no function build",
            hint="def build(tl, *, dtype, ...): return the prim_func",
        )
    declaration = validate(Declaration, _mapping(literals["KERNEL"], f"{path}: KERNEL"), where=f"{path}: KERNEL")
    cases = [
        validate(Case, _mapping(case, f"{path}: CASES"), where=f"{path}: CASES") for case in literals.get("CASES", [])
    ]
    arguments = [argument.arg for argument in build.args.kwonlyargs]
    unknown = next((size for size in declaration.sizes if size not in arguments), None)
    if unknown is not None:
        raise UsageError(
            f"{path}: KERNEL names the size {unknown!r}, which build does not take",
            hint="sizes are keyword arguments of build",
        )
    settings = tuple(name for name in arguments if name != "dtype" and name not in declaration.sizes)
    defaults = {
        argument.arg: default.value
        for argument, default in zip(build.args.kwonlyargs, build.args.kw_defaults, strict=True)
        if argument.arg in settings and isinstance(default, ast.Constant) and isinstance(default.value, int)
    }
    return Kernel(
        path,
        f"{DEFAULT_SOURCE}/{path.name}",
        declaration,
        tuple(cases),
        settings,
        sha256_file(path),
        defaults,
        _space(literals.get("TUNE", {}), defaults, path),
        {
            argument.arg: ast.literal_eval(default)
            for argument, default in zip(build.args.kwonlyargs, build.args.kw_defaults, strict=True)
            if argument.arg in declaration.sizes and isinstance(default, ast.Constant)
        },
    )


def _space(literal: Any, defaults: Mapping[str, Any], path: Path) -> dict[str, tuple[int | bool, ...]]:
    found: dict[str, tuple[int | bool, ...]] = {}
    for name, values in _mapping(literal, f"{path}: TUNE").items():
        if name not in defaults:
            raise UsageError(
                f"{path}: TUNE names {name!r}, which is no tile setting of build{nearest(str(name), list(defaults))}",
                hint=f"settings: {', '.join(defaults)}",
            )
        if not isinstance(values, list | tuple) or not values or not all(isinstance(one, int) for one in values):
            raise UsageError(
                f"{path}: TUNE.{name} must be a list of whole numbers or true/false", hint="for example: [64, 128]"
            )
        found[name] = tuple(values)
    return found


def _assigns(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(goal, ast.Name) and goal.id == name for goal in node.targets)


def _literal(node: ast.stmt, name: str, path: Path) -> Any:
    assert isinstance(node, ast.Assign)
    try:
        return ast.literal_eval(node.value)
    except ValueError as error:
        raise UsageError(
            f"{path}:{node.lineno}: {name} must be a literal (it is read, not run)", hint="write plain values"
        ) from error


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} must be a dictionary, not {type(value).__name__}", hint="see kernels/README.md")
    return value
