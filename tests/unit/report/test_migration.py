from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from amdflow.findings import Finding, Severity
from amdflow.report.migration import FileResult, MigrationReport, write_html, write_markdown
from tests.unit.report.reports import MIGRATED, ORIGINAL, PTX, WARP, header, migration, unit

NASTY = "</script><script>alert(1)</script> \"quoted\" 'single' & 注意力 <!-- `tick` | pipe\n\tsecond line\u2028end"


class Page(HTMLParser):
    """The page as a browser's tokenizer sees it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text: list[str] = []
        self.links: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._inside = tag
        if tag == "script":
            self.scripts.append((attributes, ""))
        for name in ("src", "href"):
            if name in attributes:
                self.links.append(attributes[name] or "")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._inside != "style":
            self.text.append(data)

    def embedded(self, name: str) -> Any:
        kind, text = next((row.get("type"), text) for row, text in self.scripts if row.get("id") == name)
        return json.loads(zlib.decompress(base64.b64decode(text), -15) if kind == "text/plain" else text)


def html(report: MigrationReport, folder: Path) -> str:
    write_html(report, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def markdown(report: MigrationReport, folder: Path) -> str:
    write_markdown(report, folder / "report.md")
    return (folder / "report.md").read_text(encoding="utf-8")


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    page = Page(html(migration(), tmp_path))
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert "default-src &#39;none&#39;" in (tmp_path / "report.html").read_text()
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", (tmp_path / "report.html").read_text())


def test_the_page_says_the_honest_headline(tmp_path: Path) -> None:
    text = " ".join(Page(html(migration(), tmp_path)).text)
    assert "1 of 2 units compile for gfx942, 2 of 2 for gfx1100" in text
    assert "no migrated code was run on a GPU" in text
    assert "hipify-clang" in text
    assert "22.0.0" in text


@pytest.mark.parametrize("findings", [[WARP], [PTX], []])
def test_nothing_ever_says_a_hundred_per_cent(findings: list[Finding], tmp_path: Path) -> None:
    report = migration([unit("src/a.cu")], findings)
    assert "100 %" not in " ".join(Page(html(report, tmp_path)).text)
    assert "100%" not in " ".join(Page(html(report, tmp_path)).text)
    assert "100 %" not in markdown(report, tmp_path)


def test_findings_come_worst_first_and_files_worst_first(tmp_path: Path) -> None:
    data = Page(html(migration(), tmp_path)).embedded("data")
    assert [item["s"] for item in data["findings"]] == ["silent", "compile", "note"]
    assert [(item["p"], item["r"]) for item in data["files"]] == [
        ("src/b.cu", "blocked"),
        ("src/a.cu", "to check"),
        ("include/c.cuh", "not compiled alone"),
    ]
    assert data["files"][2]["n"] == ["hipify-clang crashed"]


def test_differences_are_embedded_apart_and_only_where_there_is_something_to_see(tmp_path: Path) -> None:
    quiet = unit("quiet.cu")
    report = migration([unit("src/a.cu"), quiet])
    report = replace(report, sources={**report.sources, "quiet.cu": (ORIGINAL, ORIGINAL)})
    page = Page(html(report, tmp_path))
    numbers = {item["p"]: item["d"] for item in page.embedded("data")["files"]}
    assert numbers["quiet.cu"] == -1
    assert [part["k"] for part in page.embedded(f"d{numbers['src/a.cu']}")] == ["~", "=", "~"]


def test_nothing_in_names_and_sources_gets_out_of_its_place(tmp_path: Path) -> None:
    file = FileResult(NASTY, NASTY, NASTY, {"gfx942": "ok"}, NASTY, [NASTY])
    finding = Finding(NASTY, Severity.SILENT, NASTY, NASTY, 1, title=NASTY, fix=NASTY, snippet=NASTY)
    report = MigrationReport(
        NASTY, ["gfx942"], {NASTY: NASTY}, [file], [finding], {NASTY: (NASTY, NASTY + "x")}, 1.0, {NASTY: NASTY}
    )
    page = Page(html(report, tmp_path))
    assert len([1 for attributes, _ in page.scripts if "type" not in attributes]) == 3
    data = page.embedded("data")
    assert data["files"][0]["p"] == NASTY
    assert data["findings"][0]["c"] == NASTY
    assert page.embedded("d0")[0]["t"][0] == NASTY.split("\n")[0]
    assert "alert(1)" in " ".join(page.text)


def test_scripts_run_only_by_their_hash(tmp_path: Path) -> None:
    text = html(migration(), tmp_path)
    hashes = set(re.findall(r"sha256-([A-Za-z0-9+/=]+)", text.replace("&#39;", "'").replace("&#43;", "+")))
    scripts = [script for attributes, script in Page(text).scripts if "type" not in attributes]
    assert {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts} == hashes


def test_a_file_name_that_is_not_utf8_is_written_all_the_same(tmp_path: Path) -> None:
    report = migration([unit("src/\udcff.cu")], [])
    assert Page(html(report, tmp_path)).embedded("data")["files"][0]["p"] == "src/\udcff.cu"
    assert "\\udcff" in markdown(report, tmp_path)


def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    shuffled = replace(
        migration(), files=list(reversed(migration().files)), findings=list(reversed(migration().findings))
    )
    assert html(migration(), tmp_path) == html(shuffled, tmp_path)
    assert markdown(migration(), tmp_path) == markdown(shuffled, tmp_path)


def test_a_very_large_tree_keeps_only_what_is_near_a_change(tmp_path: Path) -> None:
    filler = "\n".join(f"int unused_{number} = {number};" for number in range(4000))
    files = [unit(f"f{number}.cu") for number in range(100)]
    report = replace(
        migration(files, []), sources={file.path: (f"{ORIGINAL}{filler}", f"{MIGRATED}{filler}") for file in files}
    )
    page = Page(html(report, tmp_path))
    assert [part["k"] for part in page.embedded("d0")] == ["~", "=", "~", "=", "-"]
    assert (tmp_path / "report.html").stat().st_size < 500_000


class Watched(Mapping[str, tuple[str, str]]):
    """Sources that tell what was asked for."""

    def __init__(self, texts: dict[str, tuple[str, str]]) -> None:
        self.texts = texts
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> tuple[str, str]:
        self.asked.append(name)
        return self.texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


def test_texts_are_asked_for_one_by_one_and_the_page_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amdflow.report.migration._ROOM", 2_000)
    files = [unit(f"src/f{number:03}.cu") for number in range(200)]
    sources = Watched(
        {file.path: (f"int {hashlib.sha256(file.path.encode()).hexdigest()};\n", "x\n") for file in files}
    )
    report = replace(migration(files, [replace(WARP, path="src/f150.cu", line=1)]), sources=sources)
    page = Page(html(report, tmp_path))
    shown = [file["p"] for file in page.embedded("data")["files"] if file["d"] >= 0]
    assert "src/f150.cu" in shown
    assert 5 < len(shown) < 40
    assert sum(len(text) for row, text in page.scripts if row.get("type") == "text/plain") <= 2_000
    assert max(sources.asked.count(name) for name in sources) <= 3


def test_libraries_and_the_parts_of_the_estimate_are_in_page_and_markdown(tmp_path: Path) -> None:
    page, text = " ".join(Page(html(migration(), tmp_path)).text), markdown(migration(), tmp_path)
    assert "| cuDNN | MIOpen. Not one to one. | partial | 1 | 3 | `cudnnFoo` |" in text
    assert "| AMF1002 | Warp size fixed to 32 | hours | 1 | 0 | 1 to 6 hours |" in text
    for words in ("MIOpen", "cudnnFoo", "drop-in", "Not counted:", "1 to 6 hours"):
        assert words in page
    alone = replace(migration(), dependencies=())
    assert "Libraries" not in " ".join(Page(html(alone, tmp_path)).text)
    assert "## Libraries" not in markdown(alone, tmp_path)


def test_an_empty_report_is_a_page_too(tmp_path: Path) -> None:
    report = MigrationReport("src", ["gfx942"], {}, [], [])
    assert "No findings." in " ".join(Page(html(report, tmp_path)).text)
    assert "None." in markdown(report, tmp_path)


def test_markdown_lists_every_finding_at_its_line(tmp_path: Path) -> None:
    text = markdown(migration(), tmp_path)
    assert "# Migration of `cuda_src`" in text
    assert (
        "- line 2: **silent** AMF1002 Warp size fixed to 32: \\`kWarp\\` is 32; CDNA runs 64 lanes *Fix (hours):* Ask the device for its width"
        in text
    )
    assert (
        "| `include/c.cuh` | text map | not compiled alone | not a unit | not a unit | hipify-clang crashed |" in text
    )


def test_markdown_tables_hold_against_odd_names(tmp_path: Path) -> None:
    report = migration([header("a|b`c.cuh")], [replace(PTX, path="a|b`c.cuh", message="<b>x</b> | y\n# z")])
    text = markdown(report, tmp_path)
    assert "### ``a\\|b`c.cuh``" in text
    assert "\\<b\\>x\\</b\\> \\| y \\# z" in text
    widths = {line.count("|") - line.count("\\|") for line in text.splitlines() if line.startswith("| ``a")}
    assert widths == {7}
