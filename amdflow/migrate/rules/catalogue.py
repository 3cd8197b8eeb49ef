"""Loads the rule files: those that come with amdflow, then the user's, which win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from amdflow.config import nearest
from amdflow.content import shipped
from amdflow.errors import UsageError
from amdflow.files import canonical_json, sha256_text
from amdflow.migrate.build_scripts.tables import BuildTables, Library
from amdflow.migrate.compat import StandIn
from amdflow.migrate.rules.files import read_rule_file
from amdflow.migrate.rules.model import Rule, RuleFile
from amdflow.migrate.textual import Supplement


@dataclass(frozen=True)
class Catalogue:
    """Rules by id, the supplement to hipify-clang's map, and the tables for build scripts."""

    rules: Mapping[str, Rule]
    supplement: Supplement
    build: BuildTables = field(default_factory=BuildTables)
    own: Mapping[str, Path] = field(default_factory=dict)
    """Rules of the user's, with the files they are in; copies of shipped ones do not count."""
    replaced: frozenset[str] = frozenset()
    """Those of them that stand in the place of a shipped rule."""

    @cached_property
    def digest(self) -> str:
        """Changes with anything that changes what is found or renamed."""
        rules = [rule.model_dump(mode="json", exclude={"samples"}) for rule in self.rules.values()]
        return sha256_text(canonical_json([rules, asdict(self.supplement), asdict(self.build)]))

    def get(self, rule_id: str) -> Rule:
        """Raises UsageError naming the nearest id."""
        wanted = rule_id.upper()
        if wanted not in self.rules:
            raise UsageError(
                f"no such rule: {rule_id}{nearest(wanted, tuple(self.rules))}",
                hint="amdflow explain --list shows them all",
            )
        return self.rules[wanted]


def load_catalogue(workspace: Path) -> Catalogue:
    """The shipped rules and those in ``workspace/migration/rules``, which win. Raises UsageError naming file, line and key."""
    shipped_folder, own_folder = shipped("migration") / "rules", (workspace / "migration" / "rules").resolve()
    came = _read(shipped_folder)
    added = _read(own_folder) if own_folder != shipped_folder.resolve() else {}
    rules = {rule.id: rule for file in came.values() for rule in file.rules}
    own = {id_: place for id_, (rule, place) in _placed(added).items() if rules.get(id_) != rule}
    replaced = frozenset(own) & frozenset(rules)
    rules |= {rule.id: rule for file in added.values() for rule in file.rules}
    read = [*came.values(), *added.values()]
    return Catalogue(dict(sorted(rules.items())), _supplement(read), _build_tables(read), own, replaced)


def _placed(files: Mapping[Path, RuleFile]) -> dict[str, tuple[Rule, Path]]:
    """Rules by id with their files. Raises UsageError for an id that two of the user's rules have."""
    found: dict[str, tuple[Rule, Path]] = {}
    for path, file in files.items():
        for rule in file.rules:
            if rule.id in found:
                raise UsageError(
                    f"{path}: rule {rule.id} is in {found[rule.id][1]} already",
                    hint="give one of them another id: letters of your own and a number, as OUR001",
                )
            found[rule.id] = (rule, path)
    return found


def _read(folder: Path) -> dict[Path, RuleFile]:
    return {path: read_rule_file(path) for path in sorted(folder.glob("*.yaml"))}


def _supplement(files: Sequence[RuleFile]) -> Supplement:
    names: dict[str, str] = {}
    headers: dict[str, str] = {}
    namespaces: dict[str, str] = {}
    stand_ins: dict[str, StandIn] = {}
    for file in files:
        names.update(file.names)
        headers.update(file.headers)
        namespaces.update(file.namespaces)
        stand_ins.update({name: StandIn(entry.use, entry.header) for name, entry in file.stand_ins.items()})
    return Supplement(names, headers, namespaces, stand_ins)


def _build_tables(files: Sequence[RuleFile]) -> BuildTables:
    return BuildTables(
        {
            name: Library(entry.link, entry.target, entry.package)
            for file in files
            for name, entry in file.libraries.items()
        },
        {name: text for file in files for name, text in file.nvcc_options.items()},
        {name: text for file in files for name, text in file.nvcc_values.items()},
    )
