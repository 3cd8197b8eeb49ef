"""Decides from what ``inside/check.py`` found whether an export may be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amdflow.errors import AmdflowError
from amdflow.findings import Finding, Severity

# Largest difference of a logit from the trained model's, as a share of the largest logit: what rounding the merged
# weights to the data type may do. In bfloat16 0.2 % to 0.8 % were measured on models of 0.7 M and 135 M parameters.
TOLERANCE = {"bfloat16": 0.03, "float16": 0.01, "float32": 0.001}


@dataclass(frozen=True)
class Verdict:
    """A good export's figures, and what could not be looked at."""

    metrics: dict[str, Any]
    findings: tuple[Finding, ...]
    not_exercised: tuple[str, ...]


def judge(found: Mapping[str, Any], dtype: str, *, adapter: bool) -> Verdict:
    """Raises AmdflowError naming the first things that are wrong."""
    problems = [
        problem for part in ("tensors", "tokenizer", "model") for problem in found.get(part, {}).get("problems", [])
    ]
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise AmdflowError(
            f"the exported model is not right: {'; '.join(problems[:3])}{more}",
            hint="see the export log; amdflow finetune --force trains anew",
        )
    tensors, tokenizer, model = found["tensors"], found["tokenizer"], found["model"]
    metrics: dict[str, Any] = {key: tensors[key] for key in ("tensors", "parameters", "shards", "dtypes")} | {
        "vocabulary": tokenizer["vocabulary"]
    }
    findings = () if tokenizer["chat_template"] else (_no_template(),)
    if "skipped" in model:
        return Verdict(metrics, findings, (str(model["skipped"]),))
    return Verdict(
        metrics | _logits(model, dtype), findings, _without_power(model, TOLERANCE[dtype]) if adapter else ()
    )


def _logits(model: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    logits, limit = model["logits"], TOLERANCE[dtype]
    if not logits["relative"] <= limit:
        apart = f"{logits['max_difference']:.4g} ({logits['relative']:.2%} of the largest)"
        raise AmdflowError(
            f"the exported model does not compute what was trained: logits differ by {apart}, {limit:.1%} is allowed for {dtype}",
            hint="amdflow export --force; if it stays, export with --dtype float32 and report it",
        )
    figures = {
        key: round(logits[key], 6)
        for key in ("max_difference", "largest_logit", "relative", "same_top_token", "max_kl")
    }
    return {
        "logits": figures | {"tolerance": limit},
        "adapter_effect": model["adapter_effect"],
        "answer": model["answer"],
    }


def _without_power(model: Mapping[str, Any], limit: float) -> tuple[str, ...]:
    effect = model.get("adapter_effect") or 0.0
    if effect > limit:
        return ()
    return (
        f"telling a merged from an unmerged model by its logits: the adapter changes them by {effect:.2%} only, less than the tolerance of {limit:.1%}",
    )


def _no_template() -> Finding:
    return Finding(
        id="AMF6001",
        severity=Severity.SILENT,
        title="No chat template",
        message="the model has no chat template: chat endpoints will refuse it or guess one",
        fix="train with a `template`, or add chat_template.jinja to the base model",
    )
