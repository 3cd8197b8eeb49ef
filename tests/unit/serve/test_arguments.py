"""Engine options: every way of writing them, what amdflow keeps to itself, and the argv they become."""

from __future__ import annotations

from typing import Any

import pytest

from amdflow.config import Project, validate
from amdflow.errors import UsageError
from amdflow.serve.arguments import check_arguments, parse_arguments, render
from amdflow.serve.config import ServeConfig


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            ["attention-backend=triton", "--enable_metrics", "mem-fraction-static=0.8"],
            {"attention-backend": "triton", "enable-metrics": True, "mem-fraction-static": "0.8"},
        ),
        (
            ["--attention-backend", "triton", "--tp", "2", "--enable-metrics"],
            {"attention-backend": "triton", "tp": "2", "enable-metrics": True},
        ),
        (["sleep-on-idle=false"], {"sleep-on-idle": False}),
        (['json-model-override-args={"a": 1}'], {"json-model-override-args": '{"a": 1}'}),
        ({"context_length": 4096, "--tp": 2}, {"context-length": 4096, "tp": 2}),
    ],
)
def test_lists_and_mappings_mean_the_same(written: Any, meant: dict[str, Any]) -> None:
    assert parse_arguments(written) == meant
    assert ServeConfig(engine_args=written).engine_args == meant


def test_rendering_of_switches_lists_and_values_left_out() -> None:
    words = render({"a": True, "b": False, "c": None, "d": [1, "x"], "e": 0.85, "f": 16384})
    assert words == ["--a", "--d", "1", "x", "--e", "0.85", "--f", "16384"]


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("port", "--port"),
        ("model-path", "--model"),
        ("served-model-name", "--served-name"),
        ("api-key", "AMDFLOW_API_KEY"),
    ],
)
def test_what_amdflow_sets_itself_is_refused_with_its_own_flag(name: str, instead: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_arguments({name: "x"})
    assert name in caught.value.message
    assert instead in caught.value.hint


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"port": 0}, "port: input should be greater than or equal to 1, not 0"),
        ({"port": 70000}, "65535"),
        ({"ready_timeout": -1}, "ready_timeout"),
        ({"engine": "sglnag"}, "engine"),
        ({"prot": 1}, "unknown key 'prot' (did you mean port?)"),
        ({"served_name": "../up"}, "served_name: use letters"),
        ({"engine_args": "tp=2"}, "engine_args"),
        ({"engine_args": {"tp": {"a": 1}}}, "engine_args.tp"),
        ({"keep_running": "forever"}, "keep_running"),
    ],
)
def test_absurd_settings_are_refused_by_name(config: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(ServeConfig, config, where="amdflow.yaml: serve")
    assert said in caught.value.message


def test_settings_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("AMDFLOW_SERVE_PORT", "31000")
    resolved = Project(tmp_path).resolve("serve", ServeConfig, {"host": "0.0.0.0"})
    assert (resolved.value.port, resolved.value.host) == (31000, "0.0.0.0")
    assert resolved.sources["port"] == "environment"
