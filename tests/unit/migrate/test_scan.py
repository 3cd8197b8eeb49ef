"""Every file of a tree is accounted for, and hostile trees are met with clear words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amdflow.errors import UsageError
from amdflow.migrate.scan import Kind, classify, scan


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("int a;\n")


def test_files_are_sorted_into_kinds(tmp_path: Path) -> None:
    write(tmp_path, "a.cu", "b/c.cuh", "CMakeLists.txt", "sub/Makefile", "setup.py", "README.md", "x.INL")
    kinds = {entry.name: entry.kind for entry in scan(tmp_path).entries}
    assert kinds == {
        "a.cu": Kind.SOURCE,
        "b/c.cuh": Kind.HEADER,
        "CMakeLists.txt": Kind.BUILD,
        "sub/Makefile": Kind.BUILD,
        "setup.py": Kind.BUILD,
        "README.md": Kind.OTHER,
        "x.INL": Kind.HEADER,
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("GNUmakefile", Kind.BUILD),
        ("Makefile.cuda", Kind.BUILD),
        ("src/flags.mak", Kind.BUILD),
        ("cmake/FindX.cmake", Kind.BUILD),
        ("config.cmake.in", Kind.BUILD),
        ("meson.build", Kind.BUILD),
        ("cuda/BUILD.bazel", Kind.BUILD),
        ("Makefile.md", Kind.OTHER),
        ("makefiles.txt", Kind.OTHER),
        ("BUILDING", Kind.OTHER),
    ],
)
def test_build_files_go_by_many_names(name: str, kind: Kind) -> None:
    assert classify(name) is kind


def test_odd_names_are_taken(tmp_path: Path) -> None:
    names = ["with space.cu", "quo\"te'.cu", "new\nline.cu", "内核.cu", "-dash.cu"]
    write(tmp_path, *names)
    assert {entry.name for entry in scan(tmp_path).entries} == set(names)


def test_links_to_folders_never_loop(tmp_path: Path) -> None:
    root, outside = tmp_path / "tree", tmp_path / "outside"
    write(root, "src/a.cu")
    write(outside, "b.cu")
    (root / "src" / "loop").symlink_to("..")
    (root / "away").symlink_to(outside)
    (root / "broken.cu").symlink_to("nothing")
    (root / "self.cu").symlink_to("self.cu")
    tree = scan(root)
    assert [entry.name for entry in tree.entries] == ["src/a.cu"]
    assert tree.links == {"src/loop": "..", "away": str(outside), "broken.cu": "nothing", "self.cu": "self.cu"}
    assert "outside the tree" in tree.left_out["away"]
    assert tree.left_out["broken.cu"] == tree.left_out["self.cu"] == "a link to nothing"


def test_what_links_lead_to_outside_the_tree_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    write(root, "src/a.cu")
    write(tmp_path, "secret.h")
    (root / "src" / "secret.h").symlink_to("../../secret.h")
    (root / "src" / "same.cu").symlink_to("a.cu")
    tree = scan(root)
    assert [entry.name for entry in tree.entries] == ["src/a.cu", "src/same.cu"]
    assert "outside the tree" in tree.left_out["src/secret.h"]
    assert tree.links == {"src/secret.h": str(tmp_path / "secret.h")}


def test_earlier_outputs_and_version_control_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.cu", ".git/config.h", "out/x.cu", "hip/b.cu", "plain/c.cu")
    for folder in ("hip/amdflow-report", "done"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "manifest.json").write_text('{"schema": "amdflow/manifest"}')
    write(tmp_path, "done/d.cu")
    tree = scan(tmp_path, outputs=[tmp_path / "out"])
    assert [entry.name for entry in tree.entries] == ["a.cu", "plain/c.cu"]
    assert set(tree.left_out) == {".git", "out", "hip", "done"}


def test_exclude_takes_names_and_paths(tmp_path: Path) -> None:
    write(tmp_path, "a.cu", "third_party/b.cu", "x/gen.cu")
    tree = scan(tmp_path, exclude=["third_party", "x/*.cu"])
    assert [entry.name for entry in tree.entries] == ["a.cu"]


def test_pipes_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.cu")
    os.mkfifo(tmp_path / "pipe.cu")
    assert scan(tmp_path).left_out["pipe.cu"] == "not a regular file"


@pytest.mark.parametrize(
    ("made", "words"),
    [("none", "no such folder"), ("file", "is a file"), ("empty", "it is empty"), ("other", "it holds 1 other files")],
)
def test_nothing_to_migrate_is_said_plainly(tmp_path: Path, made: str, words: str) -> None:
    root = tmp_path / "tree"
    if made == "file":
        root.write_text("")
    elif made != "none":
        root.mkdir()
        if made == "other":
            write(root, "README.md")
    with pytest.raises(UsageError, match=words):
        scan(root)


def test_a_name_that_is_not_utf_8_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, "a.cu")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.cu"))).write_text("")
    with pytest.raises(UsageError, match="not UTF-8"):
        scan(tmp_path)


def test_an_unreadable_file_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.cu", "secret.cu")
    monkeypatch.setattr(os, "access", lambda path, _mode: "secret" not in str(path))  # root reads everything
    with pytest.raises(UsageError, match=r"secret\.cu: permission denied"):
        scan(tmp_path)


def test_a_link_that_leads_to_itself_costs_nobody_the_tree(tmp_path: Path) -> None:
    write(tmp_path, "a.cu", ".amdflow/scratch/hip/a.cu")
    (tmp_path / "loop.cu").symlink_to("loop.cu")
    tree = scan(tmp_path)
    assert [entry.name for entry in tree.entries] == ["a.cu"]
    assert tree.left_out == {"loop.cu": "a link to nothing", ".amdflow": "an earlier amdflow output"}


def test_a_name_that_is_not_utf8_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.cu").touch()
    (tmp_path / os.fsdecode(b"caf\xe9.cu")).touch()
    with pytest.raises(UsageError) as raised:
        scan(tmp_path)
    assert "--exclude 'caf*.cu'" in raised.value.hint
    tree = scan(tmp_path, exclude=["caf*.cu"])
    assert [entry.name for entry in tree.entries] == ["a.cu"]
    assert tree.left_out == {"caf\\udce9.cu": "excluded by migrate.exclude"}
