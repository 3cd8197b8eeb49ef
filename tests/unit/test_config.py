"""amdflow.yaml: layers, sources, and one clear sentence for everything that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from amdflow.config import Model, Project, ProjectConfig, load_project, read_yaml_mapping
from amdflow.errors import ExitCode, UsageError


class Inner(Model):
    depth: int = 1


class Section(Model):
    learning_rate: float = Field(default=1e-4, gt=0)
    jobs: int = 2
    inner: Inner = Inner()


def test_layers_win_in_order_and_sources_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMDFLOW_KERNELS_JOBS", "3")
    project = Project(
        tmp_path, {"kernels": {"jobs": 1, "learning_rate": 0.5}}, {"kernels": {"inner": {"depth": 4}, "jobs": 9}}
    )
    found = project.resolve("kernels", Section)
    assert (found.value.jobs, found.value.learning_rate, found.value.inner.depth) == (3, 0.5, 4)
    assert found.sources == {"inner": "user config", "jobs": "environment", "learning_rate": "amdflow.yaml"}
    flagged = project.resolve("kernels", Section, {"jobs": 5, "learning_rate": None})
    assert (flagged.value.jobs, flagged.sources["jobs"], flagged.value.learning_rate) == (5, "flag", 0.5)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"job": 1}, "unknown key 'job' (did you mean jobs?)"),
        ({"inner": {"dept": 1}}, "unknown key 'inner.dept' (did you mean depth?)"),
        ({"learning_rate": -1}, "learning_rate: input should be greater than 0, not -1"),
        ({"jobs": "many"}, "jobs: input should be a valid integer"),
    ],
)
def test_bad_values_are_named(tmp_path: Path, section: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Project(tmp_path, {"kernels": section}).resolve("kernels", Section)
    assert message in caught.value.message
    assert caught.value.message.startswith("amdflow.yaml: kernels: ")
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"- a\n- b\n", "holds a list, not a mapping"),
        (b"just text\n", "holds a text, not a mapping"),
        (b"a: [1,\nb: 2\n", "not valid YAML"),
        (b"caf\xe9: 1\n", "not UTF-8 text (byte 3)"),
        (b"1: x\n", "key 1 is not text"),
        (b"migrat: {}\n", "unknown key 'migrat' (did you mean migrate?)"),
        (b"migrate: 3\n", "migrate must be a mapping, not a number"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "amdflow.yaml"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_project(tmp_path)
    assert message in caught.value.message
    assert str(file) in caught.value.message


def test_yaml_never_builds_objects(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("a: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(UsageError, match="not valid YAML"):
        read_yaml_mapping(file)


def test_the_nearest_project_upwards_is_taken(tmp_path: Path) -> None:
    (tmp_path / "amdflow.yaml").write_text("workdir: elsewhere\nmigrate:\n")
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    project = load_project(deep)
    assert project.root == tmp_path.resolve()
    assert project.resolve("", ProjectConfig).value.workdir == "elsewhere"
    assert project.sections["migrate"] == {}


def test_without_a_file_defaults_serve(tmp_path: Path) -> None:
    project = load_project(tmp_path)
    assert (project.root, project.resolve("", ProjectConfig).value.workdir) == (tmp_path, "out")
