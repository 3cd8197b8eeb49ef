"""Looks at the original sources and build files with the rule catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amdflow import process
from amdflow.findings import Finding
from amdflow.migrate import keep
from amdflow.migrate.api_map import ApiMap
from amdflow.migrate.hazards import UNSUPPORTED, findings_of, unsupported_names
from amdflow.migrate.regions import find_regions
from amdflow.migrate.rules.build_files import detect_in_build_file
from amdflow.migrate.rules.catalogue import Catalogue
from amdflow.migrate.rules.detect import detect
from amdflow.migrate.scan import Kind, Tree
from amdflow.migrate.syntax import Source
from amdflow.migrate.text import decode

_BUILD_FILE_LIMIT_BYTES = 2_000_000


@dataclass
class Inspection:
    """What was found in the original sources.

    ``regions`` are for the kernels stage; ``kept`` are the files with regions that are to be left alone.
    """

    findings: list[Finding] = field(default_factory=list)
    regions: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[str, keep.Kept] = field(default_factory=dict)


def inspect_sources(tree: Tree, catalogue: Catalogue, texts: Mapping[str, str], api: ApiMap) -> Inspection:
    """Every rule over every file, in path order."""
    rules = list(catalogue.rules.values())
    result = Inspection()
    for entry in tree.entries:
        process.check_cancelled()
        if entry.name in texts:
            source = Source(entry.name, _without_kept(result, entry.name, texts[entry.name]))
            _inspect(source, catalogue, api, result)
        elif entry.kind is Kind.BUILD and entry.size < _BUILD_FILE_LIMIT_BYTES:
            text = _without_kept(result, entry.name, decode(entry.path.read_bytes()), build_file=True)
            source = Source(entry.name, text)
            result.findings += findings_of(
                entry.name, detect_in_build_file(entry.name, source.text, rules), source.line
            )
    return result


def _without_kept(result: Inspection, name: str, text: str, *, build_file: bool = False) -> str:
    kept = keep.find(text, build_file=build_file)
    if kept.regions or kept.strays:
        result.kept[name] = kept
    return kept.blanked


def _inspect(source: Source, catalogue: Catalogue, api: ApiMap, result: Inspection) -> None:
    matches = detect(source, catalogue.rules.values())
    found = findings_of(source.name, matches, source.line)
    rule = catalogue.rules.get(UNSUPPORTED)
    if rule is not None:
        found += unsupported_names(source, api, rule, {match.line for match in matches}, _settled(catalogue))
    result.findings += found
    result.regions += find_regions(source, matches)


def _settled(catalogue: Catalogue) -> set[str]:
    """Names that the tool's map lacks and amdflow's own has."""
    return {*catalogue.supplement.names, *catalogue.supplement.stand_ins}
