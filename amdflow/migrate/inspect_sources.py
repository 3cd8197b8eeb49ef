"""Looks at the original sources and build files with the rule catalogue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from amdflow import process
from amdflow.files import sha256_text
from amdflow.findings import Finding
from amdflow.migrate import keep, lexer
from amdflow.migrate.api_map import ApiMap
from amdflow.migrate.build_scripts.convert import BuildScripts
from amdflow.migrate.hazards import UNSUPPORTED, findings_of, unsupported_names, without_own_names
from amdflow.migrate.regions import find_regions
from amdflow.migrate.remembered import Remembered
from amdflow.migrate.rules.build_files import detect_in_build_file
from amdflow.migrate.rules.catalogue import Catalogue
from amdflow.migrate.rules.detect import Match, detect
from amdflow.migrate.rules.model import Rule
from amdflow.migrate.scan import Tree
from amdflow.migrate.syntax import Source, defined_macros
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
    macros_of = _own_macros(texts)
    result = Inspection()
    for entry in tree.entries:
        process.check_cancelled()
        if entry.name in texts:
            text = _without_kept(result, entry.name, texts[entry.name])
            source = Source(entry.name, text, macros_of(entry.name))
            _recall_or_inspect(source, catalogue, api, result, remembered)
        elif entry.name in scripts.originals:
            source = Source(
                entry.name, _without_kept(result, entry.name, scripts.originals[entry.name], build_file=True)
            )
            result.findings += findings_of(entry.name, _left_in_script(entry.name, scripts, rules), source.line)
    remembered.save()
    result.findings = without_own_names(result.findings, texts)
    return result


def _own_macros(texts: Mapping[str, str]) -> Callable[[str], frozenset[str]]:
    """For a file's name: macros of CUDA's versions to which a header that it includes, itself or through others, gives a value."""
    defined = {name: macros for name, text in texts.items() if (macros := defined_macros(text))}
    if not defined:
        return lambda _name: frozenset()
    named: dict[str, list[str]] = defaultdict(list)
    for name in texts:
        named[name.rpartition("/")[2]].append(name)

    def of(name: str) -> frozenset[str]:
        seen, pending = {name}, [name]
        while pending:
            for include in lexer.includes(texts[pending.pop()]):
                fresh = [path for path in named.get(include.path.rpartition("/")[2], ()) if path not in seen]
                seen.update(fresh)
                pending += fresh
        return frozenset().union(*(defined.get(path, frozenset()) for path in seen))

    return of


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
    key = sha256_text(printable(f"{source.name}\0{sorted(source.own_macros)}\0{source.text}"))
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
