"""What a CUDA name is called in HIP: from the installed tool's tables and from amdflow's own rules."""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.migrate.api_map import Api, ApiMap, api_json, export_map, export_tables
from amdflow.migrate.compat import FOLDER
from amdflow.migrate.fixes.logical_warps import FUNCTIONS
from amdflow.migrate.fixes.warp_size import SIZE
from amdflow.migrate.rules.catalogue import Catalogue, load_catalogue
from amdflow.migrate.rules.model import CallPattern, CodePattern, IncludePattern, Rule
from amdflow.migrate.textual import HeaderPlaces
from amdflow.terminal import Terminal
from amdflow.toolchain import Rocm

_OURS = "amdflow's own rules"
_NEAREST = 5


@dataclass(frozen=True)
class Names:
    """Everything that is known: the tool's tables and map, the rules, where this ROCm keeps its headers."""

    tables: dict[str, Api]
    known: ApiMap
    catalogue: Catalogue
    places: HeaderPlaces

    def find(self, name: str) -> dict[str, Any] | None:
        """JSON facts about one name (``hip`` is None where HIP has nothing), or None when nothing is known."""
        facts = self._header(name) or self._ours(name) or self._theirs(name)
        rules = [rule.id for rule in self.catalogue.rules.values() if _speaks_of(rule, name)]
        if facts is None:
            return {"name": name, "hip": None, "table": _OURS, "rules": rules} if rules else None
        return facts | ({"rules": rules} if rules else {})

    def _header(self, name: str) -> dict[str, Any] | None:
        headers = {**self.known.headers, **self.catalogue.supplement.headers}
        if name not in headers:
            return None
        return {"name": name, "hip": self.places.settle(headers[name]) or None, "table": "headers"}

    def _ours(self, name: str) -> dict[str, Any] | None:
        supplement = self.catalogue.supplement
        if name in supplement.stand_ins:
            stand_in = supplement.stand_ins[name]
            return {"name": name, "hip": stand_in.use, "table": _OURS, "header": f"{FOLDER}/{stand_in.header}"}
        if name in FUNCTIONS or name == SIZE:
            new = "warp_size" if name == SIZE else name.removeprefix("__")
            facts = {"name": name, "hip": f"amdflow::{new}", "table": _OURS, "section": "warps of 32 lanes"}
            return facts | {"header": f"{FOLDER}/warp.h", "hip_with_native_warp": name}
        for names, kind in ((supplement.names, {}), (supplement.namespaces, {"section": "namespace"})):
            if name in names:
                return {"name": name, "hip": names[name], "table": _OURS, **kind}
        return None

    def _theirs(self, name: str) -> dict[str, Any] | None:
        if name in self.tables:
            api = self.tables[name]
            return api_json(api) | {"hip": api.hip or self.known.names.get(name)}
        if name in self.known.names:
            return {"name": name, "hip": self.known.names[name], "table": "hipify-clang's substitutions"}
        return None

    def like(self, name: str) -> list[str]:
        """The nearest known names, best first."""
        supplement = self.catalogue.supplement
        every = {*self.tables, *self.known.names, *self.known.headers}
        every |= {*supplement.names, *supplement.headers, *supplement.stand_ins}
        lowered: dict[str, str] = {}
        for known in sorted(every):
            lowered.setdefault(known.lower(), known)
        return [lowered[near] for near in difflib.get_close_matches(name.lower(), list(lowered), _NEAREST, 0.7)]


def lookup_name(name: str, workspace: Path, rocm: Rocm, terminal: Terminal) -> None:
    """Print what ``name`` becomes. Raises UsageError with the nearest names when nothing is known, EnvironmentProblem without hipify-clang."""
    if rocm.hipify is None:
        raise EnvironmentProblem(
            f"ROCm {rocm.version} in {rocm.root} has no hipify-clang", hint="amdflow toolchain install rocm"
        )
    names = _read(rocm, rocm.hipify, workspace)
    facts = names.find(name)
    if facts is None:
        near = names.like(name)
        raise UsageError(
            f"neither hipify-clang {rocm.version} nor amdflow knows {name}"
            + (f"; near it: {', '.join(near)}" if near else ""),
            hint=f"amdflow lookup {near[0]}" if near else "it may be a name of the program's own",
        )
    terminal.data(facts)
    terminal.print("\n".join(_page(facts, names.catalogue)))


def _read(rocm: Rocm, hipify: Path, workspace: Path) -> Names:
    with tempfile.TemporaryDirectory(prefix="amdflow-") as folder:
        known = export_map(hipify, Path(folder) / "map.json")
    tables: dict[str, Api] = {}
    for api in export_tables(hipify):
        if api.hip or api.name not in tables:
            tables[api.name] = api
    folders = (rocm.root / "include", rocm.root / "usr" / "include")
    include = next((folder for folder in folders if (folder / "hip").is_dir()), folders[0])
    return Names(tables, known, load_catalogue(workspace), HeaderPlaces(include))


def _speaks_of(rule: Rule, name: str) -> bool:
    """Whether the rule is about this very name, not about any name."""
    how = rule.detect
    if isinstance(how, CallPattern):
        return re.fullmatch(how.name, name) is not None and not how.arguments
    if isinstance(how, CodePattern | IncludePattern):
        return re.fullmatch(how.pattern, name) is not None
    return False


def _page(facts: dict[str, Any], catalogue: Catalogue) -> list[str]:
    dropped = facts["table"] == "headers"
    nothing = "(not needed in HIP: the include is dropped)" if dropped else "(HIP has no such thing)"
    lines = [
        f"{facts['name']} -> {facts['hip'] or nothing}{'  (experimental)' if facts.get('hip_experimental') else ''}"
    ]
    lines += [f"  {', '.join(facts[key] for key in ('table', 'section') if facts.get(key))}"]
    lines += [f"  from {facts['header']}, which is copied into the output"] if facts.get("header") else []
    native = facts.get("hip_with_native_warp")
    lines += [f"  with --native-warp, and in code that knows HIP already: {native}"] if native else []
    lines += _versions(
        "CUDA", facts, (("added", "cuda_added"), ("deprecated", "cuda_deprecated"), ("removed", "cuda_removed"))
    )
    lines += _versions("HIP", facts, (("since", "hip_added"), ("deprecated", "hip_deprecated")))
    lines += [f"  {rule}: {catalogue.get(rule).title} (amdflow explain {rule})" for rule in facts.get("rules", ())]
    return lines


def _versions(side: str, facts: dict[str, Any], words: Iterable[tuple[str, str]]) -> Sequence[str]:
    said = [f"{word} {facts[key]}" for word, key in words if facts.get(key)]
    return [f"  {side}: {', '.join(said)}"] if said else []
