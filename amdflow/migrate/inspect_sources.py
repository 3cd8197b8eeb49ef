"""Looks at the original sources and build files with the rule catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from amdflow import process
from amdflow.files import sha256_text
from amdflow.findings import Finding
from amdflow.migrate import keep
from amdflow.migrate.api_map import ApiMap
from amdflow.migrate.build_scripts.convert import BuildScripts
from amdflow.migrate.hazards import UNSUPPORTED, findings_of, unsupported_names
from amdflow.migrate.regions import find_regions
from amdflow.migrate.remembered import Remembered
from amdflow.migrate.rules.build_files import detect_in_build_file
from amdflow.migrate.rules.catalogue import Catalogue
from amdflow.migrate.rules.detect import Match, detect
from amdflow.migrate.rules.model import Rule
from amdflow.migrate.scan import Tree
from amdflow.migrate.syntax import Source
from amdflow.migrate.text import printable


@dataclass
class Inspection:
    """What was found in the original sources.

    ``regions`` are for the kernels stage; ``kept`` are the files with regions that are to be left alone.
    """

    findings: list[Finding] = field(default_factory=list)
    regions: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[str, keep.Kept] = field(default_factory=dict)


def inspect_sources(
    tree: Tree,
    catalogue: Catalogue,
    texts: Mapping[str, str],
    api: ApiMap,
    scripts: BuildScripts,
    remembered: Remembered,
) -> Inspection:
    """Every rule over every file, in path order; over build scripts as they were converted, for what is left to do."""
    rules = list(catalogue.rules.values())
    result = Inspection()
    for entry in tree.entries:
        process.check_cancelled()
        if entry.name in texts:
            source = Source(entry.name, _without_kept(result, entry.name, texts[entry.name]))
            _recall_or_inspect(source, catalogue, api, result, remembered)
        elif entry.name in scripts.originals:
            source = Source(
                entry.name, _without_kept(result, entry.name, scripts.originals[entry.name], build_file=True)
            )
            result.findings += findings_of(entry.name, _left_in_script(entry.name, scripts, rules), source.line)
    remembered.save()
    return result


def _left_in_script(name: str, scripts: BuildScripts, rules: Sequence[Rule]) -> list[Match]:
    """What rules find in a build script after its conversion, at the lines of the original."""
    done = scripts.current(name)
    text = keep.find(done.text, build_file=True).blanked
    found = [replace(match, line=done.lines.original(match.line)) for match in detect_in_build_file(name, text, rules)]
    return list({(match.rule.id, match.line): match for match in found}.values())


def _without_kept(result: Inspection, name: str, text: str, *, build_file: bool = False) -> str:
    kept = keep.find(text, build_file=build_file)
    if kept.regions or kept.strays:
        result.kept[name] = kept
    return kept.blanked


def _recall_or_inspect(
    source: Source, catalogue: Catalogue, api: ApiMap, result: Inspection, remembered: Remembered
) -> None:
    key = sha256_text(printable(f"{source.name}\0{source.text}"))
    known = remembered.get(key)
    if known is None:
        own = Inspection()
        _inspect(source, catalogue, api, own)
        known = {"findings": [finding.to_json() for finding in own.findings], "regions": own.regions}
        remembered.put(key, known)
    result.findings += [Finding.from_json(finding) for finding in known["findings"]]
    result.regions += known["regions"]


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
