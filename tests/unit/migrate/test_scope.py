"""Rules that matter on some targets, or with some versions of ROCm, only."""

from __future__ import annotations

from typing import Any

import pytest

from amdflow.config import validate
from amdflow.errors import UsageError
from amdflow.findings import Finding, Severity
from amdflow.migrate.rules.catalogue import Catalogue
from amdflow.migrate.rules.model import Rule
from amdflow.migrate.rules.scope import describe, matching_targets, narrow
from amdflow.migrate.rules.versions import in_range
from amdflow.migrate.textual import Supplement

TARGETS = ("gfx1100", "gfx942", "gfx950")


def rule(**scope: Any) -> Rule:
    text = dict.fromkeys(("title", "message", "explanation", "fix"), "Words.")
    data = {"id": "AMF1999", "category": "kernel", "severity": "silent", "effort": "hours", "detect": {"kind": "stage"}}
    return validate(Rule, data | text | scope, where="a rule")


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({}, TARGETS),
        ({"wavefront": 64}, ("gfx942", "gfx950")),
        ({"wavefront": 32}, ("gfx1100",)),
        ({"targets": ["CDNA3"]}, ("gfx942",)),
        ({"targets": ["CDNA"]}, ("gfx942", "gfx950")),
        ({"targets": ["gfx950", "RDNA3"]}, ("gfx1100", "gfx950")),
        ({"targets": ["gfx950"], "wavefront": 32}, ()),
        ({"rocm": ">=7.0,<7.13"}, TARGETS),
        ({"rocm": ">=7.13"}, ()),
    ],
)
def test_targets_a_rule_matters_on(scope: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert matching_targets(rule(**scope), TARGETS, "7.2.4") == expected


def test_findings_carry_the_targets_and_vanish_without_one() -> None:
    found = Finding("AMF1999", Severity.SILENT, "words", targets=())

    def narrowed(targets: tuple[str, ...], **scope: Any) -> list[tuple[str, ...]]:
        catalogue = Catalogue({"AMF1999": rule(**scope)}, Supplement())
        return [finding.targets for finding in narrow([found], catalogue, targets, "7.2.4")]

    assert narrowed(TARGETS, wavefront=64) == [("gfx942", "gfx950")]
    assert narrowed(("gfx1100",), wavefront=64) == []
    assert narrowed(TARGETS, rocm="<7.0") == []
    assert narrowed(TARGETS) == [()]


@pytest.mark.parametrize(
    ("version", "text", "expected"),
    [
        ("7.2.4", ">=7.2", True),
        ("7.2", ">=7.2.4", False),
        ("7.10.0", ">=7.9", True),
        ("6.4.1", "<7", True),
        ("7.2.0", "==7.2", True),
        ("", ">=7.2", True),
        ("7.2.4+dfsg", ">7.2.3,<=7.2.4", True),
    ],
)
def test_versions(version: str, text: str, expected: bool) -> None:
    assert in_range(version, text) is expected


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ({"targets": ["gfx943"]}, "targets.*gfx94"),
        ({"targets": ["CDNA9"]}, "did you mean CDNA"),
        ({"rocm": "7.0"}, "rocm.*>=7.0"),
        ({"wavefront": 48}, "wavefront"),
    ],
)
def test_a_faulty_scope_is_named(scope: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        rule(**scope)


def test_the_scope_is_described() -> None:
    described = describe(rule(wavefront=64, targets=["CDNA3", "gfx950"], rocm=">=7.0"))
    assert described == "targets with 64-lane waves; CDNA3, gfx950; ROCm >=7.0"
    assert describe(rule()) == ""
