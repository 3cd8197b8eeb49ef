from __future__ import annotations

from dataclasses import replace

from amdflow.findings import Severity
from amdflow.report.migration import FileResult, MigrationReport
from amdflow.report.readiness import Readiness, join_words, standing
from tests.unit.report.reports import MASK, PTX, WARP, header, migration, unit


def test_the_headline_counts_units_for_each_target_and_leaves_headers_out() -> None:
    assert standing(migration()).title() == "1 of 2 units compile for gfx942, 2 of 2 for gfx1100"


def test_targets_with_equal_figures_share_a_clause() -> None:
    assert (
        standing(migration([unit("a.cu"), unit("b.cu")], [])).title() == "2 of 2 units compile for gfx942 and gfx1100"
    )
    assert standing(migration([unit("a.cu")], [])).title() == "1 of 1 unit compiles for gfx942 and gfx1100"


def test_what_was_not_compiled_is_never_called_done() -> None:
    nothing = standing(migration([header("a.cuh")], []))
    assert nothing.title() == "No translation unit was compiled for gfx942 and gfx1100"
    assert not nothing.done
    assert "nothing was compiled" in nothing.lead()
    no_targets = standing(MigrationReport("src", [], {}, [], []))
    assert no_targets.title() == "No target was asked for, so nothing was compiled"
    assert not no_targets.done


def test_the_lead_says_what_needs_a_person_and_how_long() -> None:
    said = standing(migration()).lead()
    assert said.startswith(
        "2 places need a person, in 2 files: 1 compiles but may compute the wrong thing and 1 blocks the compiler."
    )
    assert said.endswith(" Estimated work for everything open: 1 to 6 hours.")


def test_everything_compiles_but_something_is_open() -> None:
    figures = standing(migration([unit("src/a.cu")], [WARP]))
    assert not figures.done
    assert figures.lead().startswith("1 place needs a person, in 1 file: 1 compiles but may compute the wrong thing.")


def test_done_with_speed_findings_says_so() -> None:
    assert standing(migration([unit("a.cu")], [])).lead() == "No finding is open that needs a person."
    slow = standing(migration([unit("a.cu")], [replace(WARP, severity=Severity.SLOW)]))
    assert slow.done
    assert "1 is about speed; estimated work: 1 to 6 hours" in slow.lead()


def test_failed_units_without_a_finding_are_still_said() -> None:
    assert standing(migration([unit("a.cu", "failed")], [])).lead() == "1 compile check failed."
    assert standing(migration([unit("a.cu", "failed", "failed")], [])).lead() == "2 compile checks failed."


def test_readiness_of_each_file_is_the_worst_that_is_known() -> None:
    files = [
        unit("ok.cu"),
        unit("half.cu", "ok", "failed"),
        unit("src/a.cu"),
        unit("src/b.cu"),
        header("h.cuh"),
        FileResult("CMakeLists.txt", "carried over", ""),
    ]
    assert standing(migration(files, [WARP, PTX])).readiness == {
        "ok.cu": Readiness.READY,
        "half.cu": Readiness.BLOCKED,
        "src/a.cu": Readiness.CHECK,
        "src/b.cu": Readiness.BLOCKED,
        "h.cuh": Readiness.ALONG,
        "CMakeLists.txt": Readiness.ALONG,
    }


def test_folders_add_up_and_findings_of_unlisted_files_count() -> None:
    figures = standing(migration(findings=[WARP, PTX, MASK, replace(PTX, path="CMakeLists.txt")]))
    assert figures.needs == 3
    assert figures.needing_files == 3
    assert [(folder.folder, folder.files, folder.needs) for folder in figures.folders] == [
        ("include", 1, 0),
        ("src", 2, 2),
    ]
    assert sum(folder.by_readiness[Readiness.BLOCKED] for folder in figures.folders) == 1


def test_words_are_joined_as_people_do() -> None:
    assert [join_words(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
