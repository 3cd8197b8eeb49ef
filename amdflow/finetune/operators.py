"""Custom operators in a training: which a recipe switches on (its key ``kernels``), and what their result depends on."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from amdflow.config import nearest, read_yaml_mapping
from amdflow.content import shipped
from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.files import portable
from amdflow.finetune.engine import OPERATORS, EngineFacts
from amdflow.finetune.handed import Handed
from amdflow.gpu.targets import TARGETS
from amdflow.pipeline.stage import Input

KEY = "kernels"
ALL, OFF = "all", "off"
_RIVALS = ("enable_liger_kernel", "use_unsloth")
_COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")
"""Those that TileLang looks for."""
_FOLDERS_VARIABLE, _OBJECTS_VARIABLE = "AMDFLOW_KERNELS", "AMDFLOW_KERNEL_OBJECTS"


@dataclass(frozen=True)
class Choice:
    """What a recipe switches on: operator -> ``all`` or a regular expression of module names."""

    where: Mapping[str, str] = field(default_factory=dict)
    """Operators that are on, only."""
    where_possible: bool = False
    """``kernels: all``: whatever finds a module in this model; then one that finds none is no mistake."""

    def __bool__(self) -> bool:
        return bool(self.where)

    def words(self) -> Any:
        """As the recipe would say it."""
        return ALL if self.where_possible else dict(self.where)


def take_choice(source: Path, recipe: dict[str, Any], facts: EngineFacts) -> Choice:
    """Take the key ``kernels`` out of a recipe, so that LLaMA-Factory does not see it, and check it.

    Raises UsageError for an unknown operator and for anything that is not ``all``, ``off`` or a regular expression;
    EnvironmentProblem when the fine-tuning environment cannot run operators.
    """
    given = _plain(recipe.pop(KEY, None))
    if given is None or given == OFF:
        return Choice()
    named = given.items() if isinstance(given, dict) else ()
    where = {op: text for op, value in named if (text := _where(source, op, value, facts)) != OFF}
    if isinstance(given, dict) and not where:
        return Choice()
    _check_environment(source, facts)
    if given == ALL:
        choice = Choice(dict.fromkeys(facts.operators, ALL), where_possible=True)
    elif where:
        choice = Choice(where)
    else:
        raise UsageError(
            f"{source}: {KEY} must be all, off, or a mapping of operators, not {given!r}",
            hint=f"for example: {KEY}: {{{next(iter(facts.operators))}: all}}",
        )
    rival = next((key for key in _RIVALS if recipe.get(key)), "")
    if rival:
        raise UsageError(
            f"{source}: {rival} and {KEY} would both replace the same modules",
            hint=f"leave one of them away: {rival} or {KEY}",
        )
    return choice


def everything(source: Path, recipe: Mapping[str, Any], facts: EngineFacts) -> Choice:
    """All operators, where they find modules. Raises what :func:`take_choice` raises for ``kernels: all``."""
    return take_choice(source, {**recipe, KEY: ALL}, facts)


def _plain(value: Any) -> Any:
    """YAML reads on and off as truth values."""
    return {True: ALL, False: OFF, "on": ALL}.get(value, value) if isinstance(value, (bool, str)) else value


def _where(source: Path, op: Any, value: Any, facts: EngineFacts) -> str:
    if facts.operators and op not in facts.operators:
        raise UsageError(
            f"{source}: {KEY}: there is no operator {op!r}{nearest(str(op), list(facts.operators))}",
            hint=f"operators: {', '.join(facts.operators)}",
        )
    where = _plain(value)
    if not isinstance(where, str) or not where:
        raise UsageError(
            f"{source}: {KEY}.{op} must be all, off, or a regular expression of module names, not {value!r}",
            hint=f"for example {op}: 'layers[.][0-3][.]'",
        )
    try:
        re.compile(where)
    except re.error as error:
        place = f" at character {error.pos + 1}" if error.pos is not None else ""
        close = nearest(where, [ALL, OFF])
        raise UsageError(
            f"{source}: {KEY}.{op}: {where!r} is no regular expression: {error.msg}{place}{close}",
            hint="it is looked for anywhere in a module's name; a dot stands for any character, [.] for a dot",
        ) from error
    return where


def _check_environment(source: Path, facts: EngineFacts) -> None:
    if "tilelang" not in facts.modules:
        raise EnvironmentProblem(
            f"{source}: {KEY} needs TileLang, which the fine-tuning environment does not have",
            hint="amdflow toolchain install finetune, or, in an environment of your own: pip install tilelang==0.1.15",
        )
    if not facts.operators:
        raise EnvironmentProblem(
            f"{source}: {KEY}: the operators cannot be loaded in the fine-tuning environment: {facts.operators_problem}",
            hint="amdflow toolchain install finetune",
        )


@dataclass(frozen=True)
class Operators:
    """The operators of one training, with the kernels they call and where those come from."""

    choice: Choice = field(default_factory=Choice)
    calls: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Chosen operator -> names of the kernels that it calls."""
    target: str = "cpu"
    """What they are compiled for: a gfx name, ``cuda`` or ``cpu``."""
    folders: tuple[Path, ...] = ()
    """Where kernels are looked for before the shipped ones."""
    objects: Path | None = None
    """The kernels stage's code objects, where this machine can load them."""
    taken: Mapping[str, Any] = field(default_factory=dict)
    """Digests of the code objects that are loaded."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels in use, each once."""
        return tuple(dict.fromkeys(name for names in self.calls.values() for name in names))

    def order(self) -> dict[str, Any]:
        """What the training process is told."""
        return {
            "folder": str(OPERATORS),
            "choice": dict(self.choice.where),
            "where_possible": self.choice.where_possible,
        }

    def variables(self) -> dict[str, str]:
        """Environment of the training process."""
        if not self.choice:
            return {}
        own = os.environ.get(_FOLDERS_VARIABLE, "")
        folders = os.pathsep.join([*map(str, self.folders), *filter(None, [own])])
        named = {_FOLDERS_VARIABLE: folders} if folders else {}
        return {**named, **({_OBJECTS_VARIABLE: str(self.objects)} if self.objects else {})}

    def sources(self) -> dict[str, Path]:
        """Kernel -> the file it is built from."""
        found = {}
        for kernel in self.kernels:
            files = [folder / f"{kernel}.py" for folder in (*self.folders, shipped("kernels"))]
            path = next((file for file in files if file.is_file()), None)
            if path is not None:
                found[kernel] = path
        return found

    def inputs(self) -> list[Input]:
        """Sources of the kernels in use: the training's result depends on them."""
        return [Input(f"kernels/{path.name}", path) for path in self.sources().values()]

    def describe(self) -> dict[str, Any]:
        """How the choice counts for freshness; nothing when all is off."""
        if not self.choice:
            return {}
        return {KEY: self.choice.words(), "kernel_tiles": self._tiles()}

    def _tiles(self) -> dict[str, Any]:
        """The settings that the kernels in use are built with on this machine, by file and operator."""
        facts = TARGETS.get(self.target)
        found: dict[str, Any] = {}
        for folder in (shipped("kernels"), *reversed(self.folders)):
            for name in (f"wave{facts.wavefront}", self.target) if facts else (self.target,):
                path = folder / "tiles" / f"{name}.yaml"
                entries = read_yaml_mapping(path) if path.is_file() else {}
                used = {key: value for key, value in entries.items() if str(key).split()[0] in self.kernels}
                found.setdefault(name, {}).update(used)
        return {name: entries for name, entries in found.items() if entries}

    def sentence(self) -> str:
        """For a person, in the plan."""
        if self.choice.where_possible:
            return f"custom operators: all that find modules in this model, compiled for {self.target}"
        parts = [f"{op} ({where})" for op, where in self.choice.where.items()]
        return f"custom operators, compiled for {self.target}: {', '.join(parts)}"

    def origins(self, root: Path) -> dict[str, str]:
        """Kernel -> where its source lies, for the manifest."""
        shipped_folder = shipped("kernels")
        return {
            kernel: f"kernels/{path.name} (shipped)"
            if path.parent == shipped_folder and shipped_folder not in self.folders
            else portable(path, root)
            for kernel, path in self.sources().items()
        }


def plan_operators(choice: Choice, facts: EngineFacts, handed: Handed, folder: Path, target: str) -> Operators:
    """The operators of a training on ``target``; ``folder`` is the project's own kernels, where there is one.

    Raises EnvironmentProblem on a CPU without a C++ compiler.
    """
    if choice and target == "cpu":
        _check_compiler()
    calls = {op: facts.operators[op].kernels for op in choice.where}
    folders = tuple(place for place in (folder,) if choice and place.is_dir())
    objects = handed.objects if choice and target in TARGETS else None
    operators = Operators(choice, calls, target, folders, objects)
    return replace(operators, taken=handed.digests(operators.kernels, target)) if objects else operators


def _check_compiler() -> None:
    named = os.environ.get("CXX") or os.environ.get("CC")
    if not named and not any(shutil.which(name) for name in _COMPILERS):
        raise EnvironmentProblem(
            f"{KEY}: custom operators on a CPU need a C++ compiler, and there is none",
            hint=f"apt install g++, or {KEY}: {OFF}",
        )


def missing_kernels(operators: Operators, facts: EngineFacts, handed: Handed) -> list[str]:
    """What the kernels stage has not built of what the chosen operators call, as sentences for a warning."""
    if not handed.ops:
        return []
    sentences = []
    for op in operators.choice.where:
        absent = [name for name in facts.operators[op].kernels if not _built(name, operators.target, handed)]
        if absent:
            where = f" for {operators.target}" if operators.target in TARGETS else ""
            sentences.append(
                f"{op}: the kernels stage built no {', '.join(absent)}{where}; TileLang compiles at first use in the training instead"
            )
    return sentences


def _built(kernel: str, target: str, handed: Handed) -> bool:
    targets = handed.ops.get(kernel, ())
    return target in targets if target in TARGETS else bool(targets)


def offer(facts: EngineFacts, handed: Handed) -> str:
    """How to switch on what the kernels stage handed over; empty when there is nothing."""
    ready: Sequence[str] = [
        op
        for op, entry in facts.operators.items()
        if entry.kernels and all(name in handed.ops for name in entry.kernels)
    ]
    if not ready:
        return ""
    return f"custom operators are built and off: {', '.join(ready)}; `{KEY}: {{{ready[0]}: {ALL}}}` in the config switches one on"
