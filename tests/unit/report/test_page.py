from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amdflow.report.page import duration, embed, prose, size


@settings(deadline=None)
@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_embedded_json_comes_back_and_cannot_end_its_element(value: object) -> None:
    text = str(embed(value))
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (269_060_552, "269 MB"),
        (3 * 10**12, "3 TB"),
    ],
)
def test_sizes(value: int, said: str) -> None:
    assert size(value) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (845, "14 min 5 s"), (7805, "2 h 10 min")],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_words_in_backticks_are_code_and_everything_is_escaped() -> None:
    assert str(prose("run `a <b>` & <i>")) == "run <code>a &lt;b&gt;</code> &amp; &lt;i&gt;"
    assert str(prose("one ` tick")) == "one ` tick"
