"""Nothing half-installed is ever found."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from amdflow.errors import EnvironmentProblem
from amdflow.toolchain.store import Artifact, Store
from tests.unit.toolchain.places import publish, tear, write


def test_a_build_counts_only_once_its_record_is_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.find("rocm") is None
    build = store.new_build("rocm")
    write(build, {"usr/bin/clang": "x" * 1000})
    assert store.find("rocm") is None
    assert store.begun("rocm")
    store.publish(
        "rocm", build, version="7.2.4", origin="here", artifacts=(Artifact("a", "1", "0" * 64),), facts={"llvm": "22"}
    )
    found = store.find("rocm")
    assert found is not None
    assert (found.root, found.version, found.size) == (build, "7.2.4", 1000)
    assert found.artifacts == (Artifact("a", "1", "0" * 64),)
    assert found.facts == {"llvm": "22"}
    assert not store.begun("rocm")


@pytest.mark.parametrize("damage", ["torn", "empty", "newer", "folder gone", "a list"])
def test_a_damaged_record_is_no_installation(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    build = store.new_build("rocm")
    publish(store, "rocm", build)
    record = tmp_path / "rocm/installed.json"
    if damage == "torn":
        tear(record)
    elif damage == "empty":
        record.write_text("")
    elif damage == "newer":
        record.write_text(json.dumps(json.loads(record.read_text()) | {"format": "2.0"}))
    elif damage == "a list":
        record.write_text("[]")
    else:
        build.rmdir()
    assert store.find("rocm") is None


def test_the_old_installation_serves_until_the_new_one_is_complete(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old = store.new_build("kernels")
    publish(store, "kernels", old, "1")
    new = store.new_build("kernels")
    found = store.find("kernels")
    assert found is not None
    assert found.root == old
    publish(store, "kernels", new, "2")
    found = store.find("kernels")
    assert found is not None
    assert (found.root, found.version) == (new, "2")
    assert not old.exists()


def test_what_interrupted_attempts_left_is_cleared(tmp_path: Path) -> None:
    store = Store(tmp_path)
    abandoned = store.new_build("serve")
    write(abandoned, {"lib/x": ""})
    store.new_build("serve")
    assert not abandoned.exists()


def test_the_second_install_waits_for_the_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    told, order = threading.Event(), []

    def second() -> None:
        with store.lock("rocm", told.set):
            order.append("second")

    with store.lock("rocm"):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_a_full_disk_is_said_before_work_starts(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"ROCm needs 1e\+09 GiB in .* GiB are free") as caught:
        Store(tmp_path).require_space(1e9, "ROCm")
    assert "AMDFLOW_CACHE" in caught.value.hint


def test_the_cache_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMDFLOW_CACHE", str(tmp_path / "elsewhere"))
    assert Store.default().root == tmp_path / "elsewhere"
    monkeypatch.delenv("AMDFLOW_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Store.default().root == tmp_path / "amdflow"
