"""stdout is data, stderr is talk."""

from __future__ import annotations

import json

import pytest

from amdflow.errors import UsageError
from amdflow.terminal import Format, Terminal


def test_json_goes_to_stdout_alone(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(Format.JSON)
    terminal.say("talk")
    terminal.table(("a",), [("1",)])
    terminal.data({"名": 1})
    said = capsys.readouterr()
    assert json.loads(said.out) == {"名": 1}
    assert said.err == "talk\n"


def test_quiet_keeps_warnings_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(quiet=True)
    terminal.say("talk")
    terminal.success("done")
    terminal.warn("mind")
    terminal.error(UsageError("bad [x]", hint="do y"))
    assert capsys.readouterr().err == "warning: mind\nerror: bad [x]\n  → do y\n"


def test_tables_take_any_text(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().table(("file", "n"), [("[red]a[/red]", "1")], title="t", right=(1,))
    assert "[red]a[/red]" in capsys.readouterr().out


def test_a_pipe_gets_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal().progress("work", 3) as bar:
        for _ in range(3):
            bar.update(1, note="x")
    assert "\x1b" not in capsys.readouterr().err


def test_rate_and_time_left_count_from_when_the_total_is_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("amdflow.terminal.time.monotonic", lambda: now[0])
    with Terminal().progress("training") as bar:
        now[0] += 100  # loading
        bar.update(done=40, total=80)
        now[0] += 20
        bar.update(done=50)
    assert "training: 50/80 (0.5/s, 60 s left)" in capsys.readouterr().err
