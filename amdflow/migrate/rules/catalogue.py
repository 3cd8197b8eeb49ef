"""Loads the rule files: those that come with amdflow, then the user's, which win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from amdflow.config import nearest, read_yaml_mapping, validate
from amdflow.content import shipped
from amdflow.errors import UsageError
from amdflow.files import canonical_json, sha256_text
from amdflow.migrate.build_scripts.tables import BuildTables, Library
from amdflow.migrate.compat import StandIn
from amdflow.migrate.rules.model import Rule, RuleFile
from amdflow.migrate.textual import Supplement


@dataclass(frozen=True)
class Catalogue:
    """Rules by id, the supplement to hipify-clang's map, and the tables for build scripts."""

    rules: Mapping[str, Rule]
    supplement: Supplement
    build: BuildTables = field(default_factory=BuildTables)

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
    """The shipped rules and those in ``workspace/migration/rules``. Raises UsageError naming file and key."""
    folders = dict.fromkeys((shipped("migration") / "rules", (workspace / "migration" / "rules").resolve()))
    files = [(path, _read(path)) for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.yaml"))]
    rules = {rule.id: rule for _path, file in files for rule in file.rules}
    read = [file for _path, file in files]
    return Catalogue(dict(sorted(rules.items())), _supplement(read), _build_tables(read))


def _read(path: Path) -> RuleFile:
    return validate(RuleFile, read_yaml_mapping(path), where=str(path))


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
