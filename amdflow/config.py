"""``amdflow.yaml``: read safely, layered, typed, with the origin of every value kept.

Each stage owns the model of its own section (``amdflow/<stage>/config.py``); this module reads the file, layers
flags over environment over ``amdflow.yaml`` over the user's config over defaults, and turns what pydantic refuses into
one clear sentence.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from amdflow.errors import UsageError

PROJECT_FILE = "amdflow.yaml"
STAGES = ("migrate", "kernels", "finetune", "export", "serve")
ENVIRONMENT_PREFIX = "AMDFLOW_"
_SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The same rules, ten times as fast, where PyYAML was built with libyaml."""
_TOP_LEVEL = ("workdir", "targets", "toolchain", *STAGES)


class Model(BaseModel):
    """Base of every config section: frozen, unknown keys refused, attribute docstrings are the help."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=True)


class ToolchainConfig(Model):
    """Where the outside programs are, when amdflow should not look for them itself."""

    rocm: str = ""
    """Root of a ROCm installation (as ROCM_PATH)."""
    cuda: str = ""
    """Root of CUDA 12 headers (as --cuda-path)."""
    kernels: str = ""
    """Python interpreter of an environment with torch and tilelang."""
    finetune: str = ""
    """Python interpreter of an environment with llamafactory."""
    serve: str = ""
    """Python interpreter of an environment with sglang."""
    vllm: str = ""
    """Python interpreter of an environment with vllm."""


class ProjectConfig(Model):
    """What stands at the top of ``amdflow.yaml`` and is not a stage's."""

    workdir: str = "out"
    """Folder for every stage's outputs and manifests, relative to the workspace."""
    targets: tuple[str, ...] = ("gfx942", "gfx1100")
    """gfx targets to compile for."""
    toolchain: ToolchainConfig = ToolchainConfig()


ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True)
class Resolved(Generic[ModelT]):
    """A validated section and where each of its values came from (dotted key -> ``flag``, ``environment``, a file, ``default``)."""

    value: ModelT
    sources: Mapping[str, str]


@dataclass(frozen=True)
class Project:
    """A workspace: the folder that holds ``amdflow.yaml`` (or would), and what the file says."""

    root: Path
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    user_sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """Where ``amdflow.yaml`` is or would be."""
        return self.root / PROJECT_FILE

    def resolve(self, section: str, model: type[ModelT], flags: Mapping[str, Any] | None = None) -> Resolved[ModelT]:
        """Layer and validate one section; ``flags`` whose value is None were not given. ``section`` "" is the top level.

        Raises UsageError that names file, key and the nearest valid key.
        """
        names = tuple(model.model_fields)
        layers = [
            ("user config", self._layer(self.user_sections, section, names)),
            (PROJECT_FILE, self._layer(self.sections, section, names)),
            ("environment", _from_environment(section, names)),
            ("flag", {key: value for key, value in (flags or {}).items() if value is not None}),
        ]
        merged: dict[str, Any] = {}
        sources = dict.fromkeys(names, "default")
        for origin, layer in layers:
            merged.update(layer)
            sources.update(dict.fromkeys(layer, origin))
        where = f"{self.file.name}: {section}" if section else self.file.name
        return Resolved(
            validate(model, merged, where=where, sources=sources), {key: sources[key] for key in sorted(sources)}
        )

    def _layer(
        self, sections: Mapping[str, Mapping[str, Any]], section: str, names: tuple[str, ...]
    ) -> Mapping[str, Any]:
        if section:
            return sections.get(section, {})
        return {key: value for key, value in sections.items() if key in names}


def load_project(start: Path, *, explicit: Path | None = None) -> Project:
    """The project that ``start`` lies in: the nearest folder upwards with an ``amdflow.yaml``, else ``start`` itself with defaults."""
    if explicit is not None and not explicit.is_file():
        raise UsageError(f"no such config file: {explicit}", hint="amdflow init DIR makes one")
    file = explicit or next(
        (folder / PROJECT_FILE for folder in (start, *start.parents) if (folder / PROJECT_FILE).is_file()), None
    )
    user_file = Path(os.environ.get("XDG_CONFIG_HOME", "~/.config")).expanduser() / "amdflow" / "config.yaml"
    user = read_yaml_mapping(user_file) if user_file.is_file() else {}
    if file is None:
        return Project(start, {}, _checked_sections(user, user_file))
    return Project(
        file.resolve().parent, _checked_sections(read_yaml_mapping(file), file), _checked_sections(user, user_file)
    )


def read_yaml_mapping(path: Path) -> dict[str, Any]:
    """A YAML file that must hold a mapping. Raises UsageError naming file, line and column."""
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_SafeLoader)  # noqa: S506 - it is a safe loader
    except FileNotFoundError as error:
        raise UsageError(f"no such file: {path}", hint="check the path") from error
    except IsADirectoryError as error:
        raise UsageError(f"{path} is a folder, not a YAML file", hint="name the file inside it") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise UsageError(
            f"{path}{place}: not valid YAML: {problem}", hint="check indentation and quotes there"
        ) from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UsageError(
            f"{path} holds a {_kind(data)}, not a mapping of keys to values", hint="write `key: value` lines"
        )
    odd = next((key for key in data if not isinstance(key, str)), None)
    if odd is not None:
        raise UsageError(f"{path}: key {odd!r} is not text", hint="quote it")
    return data


def validate(
    model: type[ModelT], data: Mapping[str, Any], *, where: str, sources: Mapping[str, str] | None = None
) -> ModelT:
    """``model(**data)``, or a UsageError of one line for every problem, the nearest valid key named for unknown ones."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        lines = [_explain(model, detail, sources or {}) for detail in error.errors(include_url=False)]
        raise UsageError(
            f"{where}: " + "; ".join(lines), hint="amdflow config show lists the valid keys and their defaults"
        ) from error


def nearest(name: str, valid: tuple[str, ...] | list[str]) -> str:
    """`` (did you mean X?)``, or nothing when no valid name is close."""
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def _explain(model: type[BaseModel], detail: Any, sources: Mapping[str, str]) -> str:
    location = tuple(str(part) for part in detail["loc"])
    key = ".".join(location)
    if detail["type"] == "extra_forbidden":
        return f"unknown key {key!r}{nearest(location[-1], _fields_at(model, location[:-1]))}"
    origin = sources.get(location[0], "") if location else ""
    origin = f" (from {origin})" if origin in ("flag", "environment", "user config") else ""
    message = detail["msg"].removeprefix("Value error, ")
    shown = "" if isinstance(detail["input"], dict) or detail["type"] == "missing" else f", not {detail['input']!r}"
    return f"{key}{origin}: {message[:1].lower()}{message[1:]}{shown}"


def _fields_at(model: type[BaseModel], location: tuple[str, ...]) -> tuple[str, ...]:
    for part in location:
        info = model.model_fields.get(part)
        inner = info.annotation if info else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return ()
        model = inner
    return tuple(model.model_fields)


def _checked_sections(data: Mapping[str, Any], path: Path) -> dict[str, Any]:
    for key, value in data.items():
        if key not in _TOP_LEVEL:
            raise UsageError(
                f"{path}: unknown key {key!r}{nearest(key, _TOP_LEVEL)}", hint=f"valid keys: {', '.join(_TOP_LEVEL)}"
            )
        if key in STAGES and value is not None and not isinstance(value, dict):
            raise UsageError(
                f"{path}: {key} must be a mapping, not a {_kind(value)}",
                hint=f"write `{key}:` and its keys indented below",
            )
    return {key: {} if value is None and key in STAGES else value for key, value in data.items()}


def _from_environment(section: str, names: tuple[str, ...]) -> dict[str, Any]:
    prefix = ENVIRONMENT_PREFIX + (f"{section.upper()}_" if section else "")
    found = {}
    for name in names:
        raw = os.environ.get(prefix + name.upper())
        if raw is not None:
            try:
                found[name] = yaml.safe_load(raw)
            except yaml.YAMLError as error:
                raise UsageError(
                    f"{prefix}{name.upper()} is not a valid value: {raw!r}", hint="write it as in YAML"
                ) from error
    return found


def _kind(value: Any) -> str:
    return {list: "list", str: "text", int: "number", float: "number", bool: "true/false"}.get(
        type(value), type(value).__name__
    )
