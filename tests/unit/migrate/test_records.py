"""Manual changes: as patches on disk, merged into what a later run produces, nothing lost on either side."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies

from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.migrate.finish import Finished
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.records import patch, produced, record
from amdflow.migrate.records.apply import ByHand, State, combine
from amdflow.migrate.records.merge import CLOSING, OPENING, has_conflict, merge
from amdflow.migrate.records.record import Header, Kind, Record

BASE = "#include <x>\nint lane = id & 31;\nint b;\nint c;\nint d;\nlast(256);\n"
EDITED = BASE.replace("id & 31", "id & 63")


def made(base: str = BASE, edited: str = EDITED, path: str = "src/a.cu", change: Kind = "edited") -> Record:
    header = Header(
        path=path, change=change, why="wave64", who="Ann", date="2026-01-31", amdflow="1", base=record.digest(base)
    )
    return Record(header, base, edited)


LINES = strategies.lists(
    strategies.sampled_from(["a\n", "b\n", "c\r\n", "-- d\n", "++ e\n", "\n", "\\ No newline at end of file\n"]),
    max_size=12,
)
TAIL = strategies.sampled_from(["", "end", "-- ", "\udcff"])


@given(LINES, TAIL, LINES, TAIL)
def test_a_diff_gives_the_edited_text_back(old: list[str], old_tail: str, new: list[str], new_tail: str) -> None:
    base, edited = "".join(old) + old_tail, "".join(new) + new_tail
    assert patch.apply(base, patch.make(base, edited, "a b.cu")) == edited


def test_a_diff_fits_only_its_own_base() -> None:
    diff = patch.make(BASE, EDITED, "a.cu")
    assert diff.startswith("--- a/a.cu\n+++ b/a.cu\n@@ ")
    with pytest.raises(ValueError, match="is not line 2 of the base text"):
        patch.apply(BASE.replace("31", "15"), diff)
    with pytest.raises(ValueError, match="no hunk header"):
        patch.apply(BASE, diff.replace("@@ -1", "@@ one"))
    with pytest.raises(ValueError, match="does not fit"):
        patch.apply(BASE, diff.replace("@@ -1", "@@ -99"))
    with pytest.raises(ValueError, match="no line of a unified diff"):
        patch.apply(BASE, diff + "junk\n")


def test_lines_that_a_person_replaced_and_where_new_ones_belong() -> None:
    assert patch.changed_lines("a\nb\nc\n", "a\nX\nY\nc\n") == {2}
    assert patch.line_origins("a\nb\nc\n", "a\nX\nY\nc\nd\n") == [1, 2, 2, 3, 4, 4]
    assert patch.line_origins("", "a\n") == [1, 1]


@pytest.mark.parametrize("change", ["edited", "added", "deleted"])
def test_a_record_survives_the_disk(tmp_path: Path, change: Kind) -> None:
    base = "" if change == "added" else "a\r\nb\udcff\n\nend without newline"
    edited = "" if change == "deleted" else base + "\n// --- more\n"
    kept = made(base, edited, 'odd dir/quo"te 内核.cu', change)
    file = record.write(tmp_path, kept)
    assert file == tmp_path / 'odd dir/quo"te 内核.cu.patch'
    assert record.read(file) == kept
    assert record.read_all(tmp_path) == {file: kept}
    head = file.read_bytes().decode("utf-8", "replace")
    assert "why: wave64\nwho: Ann\ndate: '2026-01-31'\n" in head


def test_a_person_may_edit_reason_and_hunks_of_a_record(tmp_path: Path) -> None:
    file = record.write(tmp_path, made())
    text = file.read_text().replace("why: wave64", "why: |\n  two\n  lines").replace("id & 63", "id % 64")
    file.write_text(text)
    kept = record.read(file)
    assert kept.edited == BASE.replace("id & 31", "id % 64")
    assert kept.says() == "Ann: two lines"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("amdflow-base", "base", "packed base text is missing"),
        ("-int lane", "-int lame", "is not line 2"),
        ("base: ", "base: 0", "not the one that `base` names"),
        ("path: src", "path: ../src", "inside the migrated tree"),
        ("path: src", "path: /src", "inside the migrated tree"),
        ("why: wave64", "why: ''", "why"),
        ("change: edited", "change: edited\nwhom: me", "whom"),
        ("change: edited", "change: [", "not YAML"),
    ],
)
def test_a_damaged_record_is_refused_by_name(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = record.write(tmp_path, made())
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(UsageError, match=said) as refused:
        record.read(file)
    assert "a.cu.patch" in refused.value.message


def test_a_record_lies_where_its_path_says(tmp_path: Path) -> None:
    file = record.write(tmp_path, made())
    file.rename(tmp_path / "other.patch")
    with pytest.raises(UsageError, match="is the record of src/a.cu"):
        record.read_all(tmp_path)


def test_changes_in_different_places_merge() -> None:
    ours = BASE.replace("256", "512").replace("#include", "#include <new>\n#include")
    assert merge(BASE, ours, EDITED).text == ours.replace("id & 31", "id & 63")
    assert not merge(BASE, ours, EDITED).conflicts


def test_fast_paths_and_the_same_change_on_both_sides() -> None:
    assert merge(BASE, BASE, EDITED).text == EDITED
    assert merge(BASE, EDITED, BASE).text == EDITED
    both = BASE.replace("31", "63")
    assert merge(BASE, both.replace("256", "512"), both.replace("int c", "int e")).text == both.replace(
        "256", "512"
    ).replace("int c", "int e")


def test_a_conflict_keeps_both_sides_and_names_its_line() -> None:
    ours = BASE.replace("id & 31", "id % 32")
    merged = merge(BASE, ours, EDITED)
    block = f"{OPENING}\nint lane = id % 32;\n=======\nint lane = id & 63;\n{CLOSING}\n"
    assert merged.text == BASE.replace("int lane = id & 31;\n", block)
    assert merged.conflicts == (2,)
    assert has_conflict(merged.text)
    assert not has_conflict(f"// {OPENING}\n")


def test_merging_keeps_bytes_line_ends_and_missing_newlines() -> None:
    base = "a\r\nb\udcff\r\nc\r\nd\r\ne"
    merged = merge(base, base.replace("a", "A"), base + "\r\nf")
    assert merged.text == "A\r\nb\udcff\r\nc\r\nd\r\ne\r\nf"
    conflict = merge(base, base + "\r\nf", base + "\r\ng")
    assert conflict.conflicts == (5,)
    assert conflict.text.count("\n") == conflict.text.count("\r\n")


TEXTS = strategies.lists(strategies.sampled_from(["a\n", "b\n", "c\n", "d\n", "e"]), max_size=9).map("".join)


@settings(max_examples=30, deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_no_changed_line_of_either_side_is_lost(base: str, ours: str, theirs: str) -> None:
    merged = merge(base, ours, theirs)
    for side in (ours, theirs):
        new = {line.rstrip("\n") for line in patch.split_lines(side)} - {
            line.rstrip("\n") for line in patch.split_lines(base)
        }
        assert new <= {line.rstrip("\n") for line in patch.split_lines(merged.text)}
    assert bool(merged.conflicts) == has_conflict(merged.text)


def test_a_machine_without_diff3_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentProblem, match="diff3") as problem:
        merge(BASE, BASE + "x", EDITED)
    assert "diffutils" in problem.value.hint


@pytest.mark.parametrize(
    ("kept", "now", "state", "text"),
    [
        (made(), BASE, State.APPLIED, EDITED),
        (made(), EDITED, State.UNNEEDED, EDITED),
        (made(), None, State.ORPHAN, None),
        (made("", "new\n", change="added"), None, State.APPLIED, "new\n"),
        (made("", "new\n", change="added"), "new\n", State.UNNEEDED, "new\n"),
        (made(BASE, "", change="deleted"), BASE, State.APPLIED, None),
        (made(BASE, "", change="deleted"), None, State.UNNEEDED, None),
        (made(BASE, "", change="deleted"), EDITED, State.CONFLICT, EDITED),
    ],
)
def test_what_a_record_comes_to(kept: Record, now: str | None, state: State, text: str | None) -> None:
    effect = combine(kept, now)
    assert (effect.state, effect.text, effect.conflicts) == (state, text, ())


def test_an_added_file_that_the_tool_now_makes_differently_is_a_conflict() -> None:
    assert combine(made("", "new\n", change="added"), "other\n").state is State.CONFLICT


def finished(text: str, original: str) -> Finished:
    return Finished("src/a.cu", text, LineMap(original, text))


def test_merged_code_traces_back_to_the_original() -> None:
    original = BASE.replace("#include <x>\n", "")
    by_hand = ByHand([made(edited=EDITED.replace("int b;\n", "int b;\nint extra;\n"))])
    done = by_hand.merge_code({"src/a.cu": finished(BASE, original)})["src/a.cu"]
    assert "int extra;" in done.text
    assert [done.lines.original(line) for line in (2, 3, 4, 5)] == [1, 2, 3, 3]
    assert by_hand.touched == {"src/a.cu": {1}}
    assert by_hand.produced == {"src/a.cu": BASE}


def test_other_files_are_changed_added_and_removed_in_the_output(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("a\nb\n")
    (tmp_path / "old.txt").write_text("old\n")
    by_hand = ByHand(
        [
            made("a\nb\n", "a\nB\n", "CMakeLists.txt"),
            made("", "new\n", "amd/new.h", "added"),
            made("old\n", "", "old.txt", "deleted"),
            made(path="gone.cu"),
        ]
    )
    by_hand.merge_files(tmp_path, {})
    assert (tmp_path / "CMakeLists.txt").read_text() == "a\nB\n"
    assert (tmp_path / "amd/new.h").read_text() == "new\n"
    assert not (tmp_path / "old.txt").exists()
    assert not (tmp_path / "gone.cu").exists()
    assert (by_hand.added, by_hand.removed) == (["amd/new.h"], {"old.txt"})
    assert [effect.state for effect in by_hand.effects] == [State.APPLIED] * 3 + [State.ORPHAN]


def test_a_record_cannot_leave_the_output_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="leaves"):
        ByHand([made("", "x", "link/x.h", "added")]).merge_files(tmp_path / "out", {})


def test_what_was_produced_is_packed_the_same_way_each_time(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"a\xff\r\n")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    (tmp_path / "big.txt").write_bytes(b"x" * (produced.LIMIT_BYTES + 1))
    names = ["big.txt", "b.bin", "a.cu", "removed.cu"]
    for archive in ("one.zip", "two.zip"):
        produced.pack(tmp_path / archive, tmp_path, names, {"removed.cu": BASE})
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert produced.unpack(tmp_path / "one.zip", names) == {"a.cu": "a\udcff\r\n", "removed.cu": BASE}
    assert produced.unpack(tmp_path / "none.zip", names) == {}
