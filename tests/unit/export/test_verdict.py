"""When an exported model may be used."""

from __future__ import annotations

from typing import Any

import pytest

from amdflow.errors import AmdflowError
from amdflow.export.verdict import TOLERANCE, judge


def found(relative: float = 0.01, effect: float = 0.5, *, chat_template: bool = True, **model: Any) -> dict[str, Any]:
    logits = {
        "max_difference": relative * 20,
        "largest_logit": 20.0,
        "relative": relative,
        "same_top_token": 1.0,
        "max_kl": 0.0,
    }
    return {
        "tensors": {"tensors": 3, "parameters": 10, "shards": 1, "dtypes": {"bfloat16": 3}, "problems": []},
        "tokenizer": {"chat_template": chat_template, "vocabulary": 5, "problems": []},
        "model": {"logits": logits, "adapter_effect": effect, "answer": "hi", "problems": []} | model,
    }


def test_a_good_export_states_its_figures() -> None:
    verdict = judge(found(), "bfloat16", adapter=True)
    assert verdict.metrics["logits"]["relative"] == 0.01
    assert verdict.metrics["logits"]["tolerance"] == TOLERANCE["bfloat16"]
    assert verdict.not_exercised == ()
    assert verdict.findings == ()


@pytest.mark.parametrize("relative", [0.2, float("nan"), float("inf")])
def test_logits_that_differ_too_much_are_refused(relative: float) -> None:
    with pytest.raises(AmdflowError, match="does not compute what was trained"):
        judge(found(relative), "bfloat16", adapter=True)


@pytest.mark.parametrize("part", ["tensors", "tokenizer", "model"])
def test_any_problem_is_named(part: str) -> None:
    data = found()
    data[part]["problems"] = ["tensor x holds NaN or infinite values", "b", "c", "d", "e"]
    with pytest.raises(AmdflowError, match=r"tensor x holds NaN or infinite values; b; c \(and 2 more\)"):
        judge(data, "bfloat16", adapter=False)


def test_a_broken_tensor_is_enough_when_nothing_else_was_looked_at() -> None:
    with pytest.raises(AmdflowError, match="NaN"):
        judge({"tensors": {"problems": ["tensor x holds NaN"]}}, "bfloat16", adapter=False)


def test_an_adapter_too_weak_to_tell_is_said_so() -> None:
    verdict = judge(found(effect=0.001), "bfloat16", adapter=True)
    assert "less than the tolerance" in verdict.not_exercised[0]
    assert judge(found(effect=0.001), "bfloat16", adapter=False).not_exercised == ()


def test_a_comparison_that_had_no_room_is_said_so() -> None:
    data = found() | {"model": {"skipped": "comparing logits needs 280 GiB of memory, 64 are free", "problems": []}}
    assert judge(data, "bfloat16", adapter=True).not_exercised == (
        "comparing logits needs 280 GiB of memory, 64 are free",
    )


def test_a_missing_chat_template_is_a_finding() -> None:
    assert [finding.id for finding in judge(found(chat_template=False), "bfloat16", adapter=True).findings] == [
        "AMF6001"
    ]
