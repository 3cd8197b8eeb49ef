"""Every rule is proven by its own samples; user rules win; mistakes in rule files are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amdflow.content import shipped
from amdflow.errors import UsageError
from amdflow.migrate.rules.build_files import detect_in_build_file
from amdflow.migrate.rules.catalogue import load_catalogue
from amdflow.migrate.rules.checks import CHECKS
from amdflow.migrate.rules.detect import detect
from amdflow.migrate.rules.model import AsmPattern, BuildPattern, Check, FromStage, Rule
from amdflow.migrate.rules.pages import diagnostics_page
from amdflow.migrate.syntax import Source

SHIPPED = load_catalogue(shipped("migration").parent)
SEARCHED = [rule for rule in SHIPPED.rules.values() if not isinstance(rule.detect, FromStage)]
BUILD_NAMES = {
    "cmake": "CMakeLists.txt",
    "make": "Makefile",
    "setup.py": "setup.py",
    "other": "meson.build",
    "any": "Makefile",
}


def lines_of(rule: Rule, code: str) -> list[int]:
    if isinstance(rule.detect, BuildPattern):
        return [match.line for match in detect_in_build_file(BUILD_NAMES[rule.detect.files], code, [rule])]
    asm = [other for other in SEARCHED if isinstance(other.detect, AsmPattern) and other is not rule]
    rules = [rule, *(asm if isinstance(rule.detect, AsmPattern) else [])]
    return [match.line for match in detect(Source("sample.cu", code), rules) if match.rule is rule]


@pytest.mark.parametrize("rule", SEARCHED, ids=lambda rule: rule.id)
def test_samples(rule: Rule) -> None:
    assert rule.samples.positive, "a rule needs a positive sample"
    assert rule.samples.negative, "a rule needs a negative sample"
    for sample in rule.samples.positive:
        assert lines_of(rule, sample.code) == list(sample.lines)
        assert lines_of(rule, sample.code.replace("\n", "\r\n")) == list(sample.lines)
        assert lines_of(rule, f"/*\n{sample.code.replace('*/', '').replace('/*', '')}*/\n") == [] or isinstance(
            rule.detect, BuildPattern
        )
    for negative in rule.samples.negative:
        assert lines_of(rule, negative) == []


@pytest.mark.parametrize("rule", SHIPPED.rules.values(), ids=lambda rule: rule.id)
def test_texts_are_whole(rule: Rule) -> None:
    assert rule.explanation.strip().endswith((".", ")"))
    assert rule.fix.strip()
    assert rule.title == rule.title.strip(" .")
    assert not rule.fixed_by or rule.fixed_by in SHIPPED.rules


def test_every_number_in_the_code_can_be_explained() -> None:
    sources = (shipped("migration").parent / "amdflow").rglob("*.py")
    used = {number for path in sources for number in re.findall(r"\bAMF\d{4}\b", path.read_text(encoding="utf-8"))}
    assert {"AMF1001", "AMF2003", "AMF5001", "AMF6001", "AMF7002"} <= used
    assert used - set(SHIPPED.rules) == {"AMF1042"}, "AMF1042 is the placeholder in descriptions"


def test_every_check_is_used() -> None:
    assert {rule.detect.name for rule in SEARCHED if isinstance(rule.detect, Check)} == set(CHECKS)


USER_RULE = """
rules:
  - id: {id}
    title: Ours
    category: library
    severity: note
    effort: minutes
    message: "{{match}} is ours"
    explanation: Because.
    fix: Do.
    detect: {{kind: call, name: ourcall}}
names: {{ourname: theirname}}
"""


def workspace(folder: Path, text: str) -> Path:
    (folder / "migration" / "rules").mkdir(parents=True)
    (folder / "migration" / "rules" / "ours.yaml").write_text(text)
    return folder


def test_user_rules_are_added_and_win(tmp_path: Path) -> None:
    made = load_catalogue(workspace(tmp_path, USER_RULE.format(id="AMF1102")))
    assert made.get("amf1102").title == "Ours"
    assert made.supplement.names["ourname"] == "theirname"
    assert made.supplement.namespaces["cub"] == "hipcub"
    assert made.digest != SHIPPED.digest
    assert [match.line for match in detect(Source("a.cu", "void f() {\n  ourcall(1);\n}"), made.rules.values())] == [2]


def test_a_rule_in_the_place_of_a_shipped_one_is_known_as_such(tmp_path: Path) -> None:
    assert not SHIPPED.own
    copied = workspace(
        tmp_path / "copied", (shipped("migration") / "rules" / "device.yaml").read_text(encoding="utf-8")
    )
    assert not load_catalogue(copied).own
    made = load_catalogue(workspace(tmp_path, USER_RULE.format(id="AMF1102")))
    assert set(made.own) == made.replaced == {"AMF1102"}
    (tmp_path / "migration" / "rules" / "ours.yaml").write_text(USER_RULE.format(id="OUR001"))
    made = load_catalogue(tmp_path)
    assert (made.own["OUR001"].name, made.replaced) == ("ours.yaml", frozenset())
    (tmp_path / "migration" / "rules" / "zzz.yaml").write_text(USER_RULE.format(id="OUR001"))
    with pytest.raises(UsageError, match=r"zzz.yaml: rule OUR001 is in .*ours.yaml already"):
        load_catalogue(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("title: Ours", "titel: Ours"),
            r"ours.yaml:3: rule AMF1102: needs the key 'title'.*:4: .*'titel'.*did you mean title",
        ),
        (("AMF1102", "X1"), "ours.yaml:3: rule X1: id: "),
        (("ourcall", "'('"), "ours.yaml:11: .*detect.name: not a valid regular expression"),
        (("severity: note", "severity: sillent"), "ours.yaml:6: .*severity.*'sillent'.*did you mean silent"),
        (("kind: call", "kind: cal"), "ours.yaml:11: .*detect.*did you mean call"),
        (("kind: call, name: ourcall", "kind: call"), "ours.yaml:11: .*detect needs the key 'name'"),
        (("kind: call, name: ourcall", "kind: check, name: small_blok"), "detect.name: no such check.*small_block"),
        (("names: {ourname: theirname}", "names: [a]"), "ours.yaml:12: names: "),
        (("names: {ourname: theirname}", "nams: {}"), "'nams'.*did you mean names"),
    ],
)
def test_a_faulty_rule_file_is_named_with_its_line(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    text = USER_RULE.format(id="AMF1102").replace(*change)
    with pytest.raises(UsageError, match=words):
        load_catalogue(workspace(tmp_path, text))


def test_an_unknown_id_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="AMF11"):
        SHIPPED.get("AMF1199")


def test_the_reference_page_is_up_to_date() -> None:
    page = shipped("docs") / "reference" / "diagnostics.md"
    assert page.read_text(encoding="utf-8") == diagnostics_page(SHIPPED.rules.values()), (
        "run: python -m amdflow.migrate.rules.pages > docs/reference/diagnostics.md"
    )
