"""``amdflow record``: what was changed in the published output is found and kept, and nobody's record is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.errors import UsageError
from amdflow.files import sha256_file
from amdflow.migrate.records import produced, record
from amdflow.migrate.records.merge import CLOSING, OPENING
from amdflow.migrate.records.record import Record
from amdflow.migrate.records.recorder import Output, Reason, Recorded, keep_changes, listing
from amdflow.pipeline.freshness import artifact_for
from amdflow.pipeline.manifest import Artifact, Manifest, Status, Timing
from amdflow.pipeline.workspace import Destination

MARK = "  // amdflow: AMF1302 silent: why (see amdflow explain AMF1302)"
FILES = {"src/a.cu": "int a;\nint b;\nint c;\n", "src/b.cuh": "int x;\n", "README.md": "read\n"}


class Published:
    """A migrated output in a workdir, or delivered to a folder of its own."""

    def __init__(self, root: Path, *, delivered: bool = False) -> None:
        self.folder = root / "migration/records"
        self.destination = (
            Destination.at_output(root / "hip", "migrate")
            if delivered
            else Destination.in_workdir(root / "out", "migrate", "hip")
        )
        self.hip = self.destination.payload
        self.publish(FILES)

    def publish(self, files: dict[str, str], *, pristine: dict[str, str] | None = None, annotated: str = "") -> None:
        """Write the output of a run that applied the records that are there now."""
        evidence = self.destination.evidence
        for name, text in files.items():
            (self.hip / name).parent.mkdir(parents=True, exist_ok=True)
            (self.hip / name).write_text(text)
        produced_of = files | (pristine or {})
        evidence.mkdir(parents=True, exist_ok=True)
        produced.pack(evidence / produced.NAME, self.hip, produced_of, produced_of)
        if annotated:
            (self.hip / annotated).write_text(files[annotated].replace(";\n", f";{MARK}\n", 1))
        up = "../" if self.destination.delivered else "hip/"
        outputs = [
            artifact_for(self.hip / name, name=name, relative=f"{up}{name}", role="source", media_type="text/plain")
            for name in files
        ]
        applied = [
            Artifact(
                name=f"migration/records/{kept.path}.patch", path="", sha256=sha256_file(file), size=1, role="record"
            )
            for file, kept in record.read_all(self.folder).items()
        ]
        Manifest(
            stage="migrate",
            stage_version=1,
            run_id="1",
            amdflow="0.1.0",
            status=Status.OK,
            exit_code=0,
            key="",
            inputs=applied,
            outputs=outputs,
            config={"source": "cuda"},
            timing=Timing(started="", ended="", seconds=0),
        ).save(self.destination.manifest)

    def edit(self, name: str, old: str, new: str) -> None:
        (self.hip / name).write_text((self.hip / name).read_text().replace(old, new))

    def record(self, *wanted: str, why: str = "because", who: str = "", login: str = "me") -> Recorded:
        return keep_changes(Output.read(self.destination), self.folder, wanted, Reason(why, who, login))

    def kept(self, name: str) -> Record:
        return record.read(record.file_of(self.folder, name))


@pytest.fixture(params=[False, True], ids=["workdir", "--output"])
def output(tmp_path: Path, request: pytest.FixtureRequest) -> Published:
    return Published(tmp_path, delivered=request.param)


def test_every_edited_file_becomes_a_patch_and_new_and_missing_ones_are_told(output: Published) -> None:
    output.edit("src/a.cu", "int b", "long b")
    (output.hip / "src/new.h").write_text("new\n")
    (output.hip / "README.md").unlink()
    result = output.record(why="wave64", who="Ann")
    assert [(entry.path, entry.change, entry.plus, entry.minus) for entry in result.written] == [
        ("src/a.cu", "edited", 1, 1)
    ]
    assert (result.left_added, result.left_missing) == (["src/new.h"], ["README.md"])
    kept = output.kept("src/a.cu")
    assert (kept.base, kept.edited) == (FILES["src/a.cu"], FILES["src/a.cu"].replace("int b", "long b"))
    assert (kept.header.why, kept.header.who, kept.header.source) == ("wave64", "Ann", "cuda")
    assert kept.header.base == record.digest(kept.base)
    assert "*.patch -text" in (output.folder / ".gitattributes").read_text()
    (output.hip / "src/b.cuh").write_text("int y;\n")
    assert [entry.path for entry in output.record(why="other").written] == ["src/b.cuh"], "a record keeps its reason"
    assert [entry.path for entry in output.record("src/a.cu", why="named").written] == ["src/a.cu"]


def test_named_files_and_folders(output: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    output.edit("src/a.cu", "int b", "long b")
    (output.hip / "src/new.h").write_text("new\n")
    (output.hip / "README.md").unlink()
    assert [entry.path for entry in output.record("src").written] == ["src/a.cu", "src/new.h"]
    monkeypatch.chdir(output.hip.parent)
    (entry,) = output.record(f"{output.hip.name}/README.md").written
    assert (entry.path, entry.change) == ("README.md", "deleted")
    assert output.kept("src/new.h").header.change == "added"
    with pytest.raises(UsageError, match="nothing was changed at src/b.cuh"):
        output.record("src/b.cuh")


def test_markers_of_findings_are_no_change(output: Published) -> None:
    output.publish(FILES, annotated="src/a.cu")
    output.edit("src/a.cu", "int c;", "long c;")
    output.record()
    assert output.kept("src/a.cu").edited == FILES["src/a.cu"].replace("int c", "long c")


def test_a_reason_is_needed_once(output: Published) -> None:
    output.edit("src/a.cu", "int b", "long b")
    with pytest.raises(UsageError, match="needs a reason") as refused:
        output.record(why="")
    assert "--why" in refused.value.hint
    assert not output.folder.exists()
    output.record(why="first", who="Ann")
    output.edit("src/a.cu", "long b", "char b")
    output.record(why="", login="Bob")
    assert (output.kept("src/a.cu").header.why, output.kept("src/a.cu").header.who) == ("first", "Ann")
    assert "char b" in output.kept("src/a.cu").edited


def test_a_conflict_must_be_resolved_first(output: Published) -> None:
    output.edit("src/a.cu", "int b;\n", f"{OPENING}\nint b;\n=======\nlong b;\n{CLOSING}\n")
    with pytest.raises(UsageError, match="conflict markers"):
        output.record()


def test_a_change_that_was_taken_back_drops_its_record(output: Published) -> None:
    output.edit("src/a.cu", "int b", "long b")
    output.record()
    output.publish(FILES | {"src/a.cu": FILES["src/a.cu"].replace("int b", "long b")}, pristine=FILES)
    output.edit("src/a.cu", "long b", "int b")
    assert output.record().dropped == ["src/a.cu"]
    assert not record.read_all(output.folder)


def test_a_record_is_renewed_when_the_tools_output_moved_on(output: Published) -> None:
    output.edit("src/a.cu", "int b", "long b")
    output.record(who="Ann")
    moved = {"src/a.cu": FILES["src/a.cu"].replace("int c", "int moved")}
    output.publish({**FILES, "src/a.cu": moved["src/a.cu"].replace("int b", "long b")}, pristine=moved)
    assert [entry.path for entry in output.record(why="").written] == ["src/a.cu"]
    assert output.kept("src/a.cu").base == moved["src/a.cu"]
    assert output.kept("src/a.cu").header.who == "Ann"


def test_a_record_from_elsewhere_is_not_lost(output: Published) -> None:
    theirs = record.Record(output_header("src/a.cu"), FILES["src/a.cu"], FILES["src/a.cu"].replace("int c", "their c"))
    file = record.write(output.folder, theirs)
    assert output.record().written == [], "not applied yet: nothing is known of it here"
    assert [entry.state for entry in listing(Output.read(output.destination), output.folder)] == ["not applied yet"]
    output.edit("src/a.cu", "int b", "long b")
    with pytest.raises(UsageError, match="changed since the last run, and the file was edited here too"):
        output.record()
    assert record.read(file) == theirs


def output_header(path: str) -> record.Header:
    return record.Header(
        path=path, change="edited", why="w", date="2026-01-01", amdflow="1", base=record.digest(FILES[path])
    )


def test_what_the_list_says(output: Published) -> None:
    output.edit("src/a.cu", "int b", "long b")
    output.record()
    edited = FILES["src/a.cu"].replace("int b", "long b")
    for pristine, state in ((FILES["src/a.cu"], "applied"), (edited, "no longer needed")):
        output.publish(FILES | {"src/a.cu": edited}, pristine={"src/a.cu": pristine})
        (entry,) = listing(Output.read(output.destination), output.folder)
        assert (entry.path, entry.state, entry.why, entry.who) == ("src/a.cu", state, "because", "me")
    assert [entry.state for entry in listing(None, output.folder)] == ["not applied yet"]


def test_an_added_file_that_was_changed_or_removed_again(output: Published) -> None:
    (output.hip / "amd.h").write_text("new\n")
    output.record("amd.h")
    output.publish(FILES | {"amd.h": "new\n"})
    (output.destination.evidence / produced.NAME).unlink()
    produced.pack(output.destination.evidence / produced.NAME, output.hip, FILES, FILES)
    output.edit("amd.h", "new", "newer")
    output.record()
    assert (output.kept("amd.h").edited, output.kept("amd.h").header.change) == ("newer\n", "added")
    (output.hip / "amd.h").unlink()
    assert output.record("amd.h").dropped == ["amd.h"]


def test_files_that_no_patch_can_hold(output: Published) -> None:
    (output.hip / "src/a.cu").write_bytes(b"\0\1")
    with pytest.raises(UsageError, match="not a text"):
        output.record()
    (output.hip / "src/a.cu").write_text("int q;\n")
    (output.destination.evidence / produced.NAME).unlink()
    with pytest.raises(UsageError, match="is not known"):
        output.record()


def test_without_an_output_there_is_nothing_to_record(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no migrated output") as refused:
        Output.read(Destination.in_workdir(tmp_path, "migrate", "hip"))
    assert "amdflow migrate" in refused.value.hint
