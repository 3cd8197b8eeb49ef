"""Looks at every row of the training data before training: what LLaMA-Factory would drop, crash on, or learn wrongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amdflow.config import nearest
from amdflow.errors import UsageError
from amdflow.findings import Finding, Severity
from amdflow.finetune.registry import Dataset
from amdflow.finetune.rows import read_rows

_SHOWN = 5
_PAIRED = ("dpo", "rm")


@dataclass
class _Lines:
    """The lines with one problem: the first few, and how many."""

    first: list[int] = field(default_factory=list)
    count: int = 0

    def add(self, line: int) -> None:
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(line)

    def __str__(self) -> str:
        more = f" and {self.count - len(self.first)} more" if self.count > len(self.first) else ""
        return f"line{'s' if self.count > 1 else ''} {', '.join(map(str, self.first))}{more}"


def check_dataset(dataset: Dataset, stage: str, file_types: Mapping[str, str]) -> tuple[int, list[Finding]]:
    """(number of rows seen, findings) for a local dataset.

    Raises UsageError naming file and lines for what the engine would drop in silence or stop at.
    """
    if dataset.files and dataset.ranking != (stage in _PAIRED):
        want = "needs" if stage in _PAIRED else "cannot use"
        raise UsageError(
            f'dataset {dataset.name}: stage {stage} {want} pairs of a chosen and a rejected answer ("ranking": true)',
            hint="choose another dataset or stage",
        )
    total, findings = 0, []
    for path in dataset.files:
        loader = file_types.get(path.suffix[1:], "")
        rows, found = _check_file(path, loader, dataset, stage)
        if loader in ("json", "csv") and not rows:
            raise UsageError(f"{path} holds no rows", hint="put some data into it")
        total += rows
        findings += found
    return total, findings


def _check_file(path: Path, loader: str, dataset: Dataset, stage: str) -> tuple[int, list[Finding]]:
    judge = _judge_for(dataset, stage)
    seen: set[str] = set()
    problems: dict[str, _Lines] = {}
    count = 0
    for line, row in read_rows(path, loader):
        count += 1
        seen.update(row)
        problem = judge(row)
        if problem:
            problems.setdefault(problem, _Lines()).add(line)
    if count:
        _check_columns(path, dataset, seen)
    blank = problems.pop(_BLANK, None)
    for problem, lines in problems.items():
        raise UsageError(
            f"{path}: {lines.count} of {count} rows {problem}: {lines}",
            hint="mend or delete them: LLaMA-Factory would drop or misread such rows without a word",
        )
    return count, [_blank_finding(path, lines=blank, count=count)] if blank else []


def _check_columns(path: Path, dataset: Dataset, seen: set[str]) -> None:
    for meaning, column in dataset.columns.items():
        if column not in seen:
            raise UsageError(
                f"{path} has no column {column!r}{nearest(column, sorted(seen))}, which dataset {dataset.name} uses as {meaning}",
                hint=f"columns there: {', '.join(sorted(seen))}; map them under `columns` in dataset_info.json",
            )


def _judge_for(dataset: Dataset, stage: str) -> Callable[[dict[str, Any]], str]:
    """A function that names what is wrong with a row, or returns nothing."""
    columns = dataset.columns
    if dataset.formatting != "alpaca":
        return lambda row: _judge_chat(row, dataset)
    if dataset.ranking:
        sides = [columns.get(side, side) for side in ("chosen", "rejected")]
        return lambda row: next(
            (f"have no text in {side!r}" for side in sides if not isinstance(row.get(side), str)), ""
        )
    if stage in ("pt", "ppo"):
        prompt = columns.get("prompt", "")
        return lambda row: "" if row.get(prompt) else f"have nothing in {prompt!r}"
    if stage == "kto" and "kto_tag" in columns:
        tag = columns["kto_tag"]
        return lambda row: "" if isinstance(row.get(tag), bool) else f"have no true or false in {tag!r}"
    return lambda row: _judge_answer(row, columns.get("response", ""))


_BLANK = "are blank"


def _judge_answer(row: dict[str, Any], column: str) -> str:
    answer = row.get(column)
    if answer is None:
        return f"have no answer ({column!r} is null or missing)"
    if not isinstance(answer, str):
        return f"have an answer that is not text ({column!r})"
    return "" if answer.strip() else _BLANK


def _judge_chat(row: dict[str, Any], dataset: Dataset) -> str:
    messages = row.get(dataset.columns.get("messages", ""))
    tags = dataset.tags
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return "have no list of messages"
    roles = [message.get(tags.get("role_tag") or "") for message in messages]
    if any(
        not isinstance(message.get(tags.get("content_tag") or ""), str) and not message.get("tool_calls")
        for message in messages
    ):
        return "have a message without text"
    if roles and roles[0] == tags.get("system_tag"):
        roles = roles[1:]
    if dataset.formatting == "openai":
        # Several tool answers in a row count as one.
        roles = [
            role
            for index, role in enumerate(roles)
            if role != tags.get("observation_tag") or index + 1 == len(roles) or roles[index + 1] != role
        ]
    sides = ({tags.get("user_tag"), tags.get("observation_tag")}, {tags.get("assistant_tag"), tags.get("function_tag")})
    if any(role not in sides[index % 2] for index, role in enumerate(roles)):
        return "have roles that do not alternate as the tags say"
    if len(roles) % 2 != (1 if dataset.ranking else 0) or not roles:
        return "end on the wrong side of the conversation"
    if dataset.ranking and any(
        not isinstance(row.get(dataset.columns.get(side, "")), dict) for side in ("chosen", "rejected")
    ):
        return "lack a chosen or rejected message"
    return "" if dataset.ranking or str(messages[-1].get(tags.get("content_tag") or "", "-")).strip() else _BLANK


def _blank_finding(path: Path, *, lines: _Lines, count: int) -> Finding:
    return Finding(
        id="AMF5001",
        severity=Severity.SILENT,
        title="Blank answers in the training data",
        path=path.name,
        line=lines.first[0],
        message=f"{lines.count} of {count} rows have a blank answer ({lines}): the model learns to say nothing",
        fix="fill the answers in, or delete these rows",
        extra={"lines": lines.first, "count": lines.count},
    )
