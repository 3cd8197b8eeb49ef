"""Where a rule matters: wave sizes, targets and versions of ROCm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from amdflow.findings import Finding
from amdflow.gpu.targets import target
from amdflow.migrate.rules.catalogue import Catalogue
from amdflow.migrate.rules.model import Rule
from amdflow.migrate.rules.versions import in_range


def is_scoped(rule: Rule) -> bool:
    """Whether it matters on some targets only."""
    return bool(rule.wavefront or rule.targets)


def matching_targets(rule: Rule, targets: Sequence[str], rocm: str) -> tuple[str, ...]:
    """Those of ``targets`` that the rule matters on with ROCm ``rocm``, in their order."""
    if not in_range(rocm, rule.rocm):
        return ()
    return tuple(name for name in targets if _matters_on(rule, name))


def _matters_on(rule: Rule, name: str) -> bool:
    facts = target(name)
    if rule.wavefront and facts.wavefront != rule.wavefront:
        return False
    generation = facts.family.rstrip("0123456789.")
    return not rule.targets or bool({facts.name, facts.family, generation} & set(rule.targets))


def narrow(findings: Iterable[Finding], catalogue: Catalogue, targets: Sequence[str], rocm: str) -> list[Finding]:
    """Findings that matter on at least one target of the run; those of a rule for some targets carry them."""
    kept = []
    for finding in findings:
        rule = catalogue.rules.get(finding.id)
        if rule is None:
            kept.append(finding)
        elif matching := matching_targets(rule, targets, rocm):
            kept.append(replace(finding, targets=matching) if is_scoped(rule) else finding)
    return kept


def describe(rule: Rule) -> str:
    """``targets with 64-lane waves; CDNA3, gfx950; ROCm >=7.0``, or empty for a rule that matters everywhere."""
    words = [f"targets with {rule.wavefront}-lane waves"] if rule.wavefront else []
    words += [", ".join(rule.targets)] if rule.targets else []
    words += [f"ROCm {rule.rocm}"] if rule.rocm else []
    return "; ".join(words)
