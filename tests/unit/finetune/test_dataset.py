"""Every row of the training data is looked at before training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from amdflow.errors import UsageError
from amdflow.findings import Finding
from amdflow.finetune.dataset import check_dataset
from amdflow.finetune.registry import names_of, read_registry
from tests.unit.finetune.workshop import GOOD_ROW, facts, make_data

TYPES = facts().file_types
SHAREGPT = {"formatting": "sharegpt"}


def turn(role: str, text: str | None) -> dict[str, str | None]:
    return {"from": role, "value": text}


def check(
    folder: Path, rows: Sequence[Any], entry: Mapping[str, Any] | None = None, stage: str = "sft"
) -> tuple[int, list[Finding]]:
    make_data(folder, rows, entry)
    return check_dataset(read_registry(str(folder), ["tiny"], TYPES)[0], stage, TYPES)


def test_good_rows_are_counted(tmp_path: Path) -> None:
    assert check(tmp_path, [GOOD_ROW, GOOD_ROW, ""]) == (2, [])


def test_null_answers_are_refused_with_their_lines(tmp_path: Path) -> None:
    rows = [GOOD_ROW, GOOD_ROW | {"output": None}, GOOD_ROW, GOOD_ROW | {"output": None}]
    with pytest.raises(UsageError, match=r"2 of 4 rows have no answer \('output' is null or missing\): lines 2, 4"):
        check(tmp_path, rows)


def test_only_the_first_lines_of_many_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lines 2, 3, 4, 5, 6 and 4 more"):
        check(tmp_path, [GOOD_ROW] + [GOOD_ROW | {"output": None}] * 9)


def test_blank_answers_are_reported_but_allowed(tmp_path: Path) -> None:
    count, findings = check(tmp_path, [GOOD_ROW, GOOD_ROW | {"output": "  "}])
    assert count == 2
    assert [finding.line for finding in findings] == [2]
    assert "learns to say nothing" in findings[0].message


def test_broken_json_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tiny\.jsonl:2: not valid JSON"):
        check(tmp_path, [GOOD_ROW, '{"instruction": "half'])


def test_a_row_that_is_no_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tiny\.jsonl:1: a row must be an object"):
        check(tmp_path, ['["a", "b"]'])


def test_a_missing_column_names_the_nearest_and_those_there(tmp_path: Path) -> None:
    rows = [{"instructions": "a", "input": "", "output": "b"}]
    with pytest.raises(UsageError, match=r"has no column 'instruction' \(did you mean instructions\?\)"):
        check(tmp_path, rows)


def test_columns_of_the_registry_replace_all_defaults(tmp_path: Path) -> None:
    entry = {"columns": {"prompt": "q", "response": "a"}}
    assert check(tmp_path, [{"q": "1", "a": "2"}], entry)[0] == 1
    with pytest.raises(UsageError, match="no column 'a'"):
        check(tmp_path, [{"q": "1", "answer": "2"}], entry)


def test_a_json_array_is_read_with_line_numbers(tmp_path: Path) -> None:
    make_data(tmp_path, [], {"file_name": "tiny.json"})
    rows = [GOOD_ROW, GOOD_ROW | {"output": None}]
    (tmp_path / "tiny.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    dataset = read_registry(str(tmp_path), ["tiny"], TYPES)[0]
    with pytest.raises(UsageError, match="line 3"):
        check_dataset(dataset, "sft", TYPES)
    (tmp_path / "tiny.json").write_text('[\n{"instruction": "a",\n')
    with pytest.raises(UsageError, match=r"tiny\.json:3: not valid JSON"):
        check_dataset(dataset, "sft", TYPES)


def test_csv_is_read(tmp_path: Path) -> None:
    make_data(tmp_path, [], {"file_name": "tiny.csv"})
    (tmp_path / "tiny.csv").write_text("instruction,input,output\nq,,a\nq,,\n")
    dataset = read_registry(str(tmp_path), ["tiny"], TYPES)[0]
    with pytest.raises(UsageError, match="1 of 2 rows have no answer"):
        check_dataset(dataset, "sft", TYPES)


def test_text_in_another_encoding_is_named(tmp_path: Path) -> None:
    make_data(tmp_path, [])
    (tmp_path / "tiny.jsonl").write_bytes('{"instruction": "中文", "input": "", "output": "好"}\n'.encode("gb18030"))
    with pytest.raises(UsageError, match="not UTF-8"):
        check_dataset(read_registry(str(tmp_path), ["tiny"], TYPES)[0], "sft", TYPES)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no rows"):
        check(tmp_path, [])


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([turn("human", "hi"), turn("gpt", "hello")], ""),
        ([turn("system", "be kind"), turn("human", "hi"), turn("gpt", "hello")], ""),
        ([turn("human", "hi"), turn("observation", "x")], "roles that do not alternate"),
        ([turn("human", "hi")], "end on the wrong side"),
        ([turn("human", "hi"), turn("gpt", None)], "a message without text"),
        ([turn("user", "hi"), turn("assistant", "hello")], "roles that do not alternate"),
        (None, "no list of messages"),
    ],
)
def test_conversations_must_alternate(tmp_path: Path, messages: Any, complaint: str) -> None:
    rows = [{"conversations": messages}]
    if not complaint:
        assert check(tmp_path, rows, SHAREGPT) == (1, [])
        return
    with pytest.raises(UsageError, match=complaint):
        check(tmp_path, rows, SHAREGPT)


def test_pairs_belong_to_stages_that_use_them(tmp_path: Path) -> None:
    pair = {"instruction": "q", "input": "", "chosen": "a", "rejected": "b"}
    columns = {"prompt": "instruction", "query": "input", "chosen": "chosen", "rejected": "rejected"}
    ranking = {"ranking": True, "columns": columns}
    assert check(tmp_path, [pair], ranking, "dpo")[0] == 1
    with pytest.raises(UsageError, match="stage sft cannot use pairs"):
        check(tmp_path, [pair], ranking, "sft")
    with pytest.raises(UsageError, match="stage dpo needs pairs"):
        check(tmp_path, [GOOD_ROW], None, "dpo")
    with pytest.raises(UsageError, match="have no text in 'rejected'"):
        check(tmp_path, [pair | {"rejected": None}], ranking, "dpo")


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({"file_name": "gone.jsonl"}, "no such file"),
        ({"file_name": "dataset_info.yaml"}, "no such file"),
        ({"file_name": None}, "names no data"),
        ({"formatting": "alpacca"}, "formatting cannot be 'alpacca'"),
    ],
)
def test_a_registry_entry_must_lead_to_data(tmp_path: Path, entry: dict[str, Any], complaint: str) -> None:
    make_data(tmp_path, [GOOD_ROW], entry)
    with pytest.raises(UsageError, match=complaint):
        read_registry(str(tmp_path), ["tiny"], TYPES)


def test_an_unreadable_format_is_refused(tmp_path: Path) -> None:
    make_data(tmp_path, [GOOD_ROW], {"file_name": "tiny.docx"})
    (tmp_path / "tiny.docx").write_bytes(b"PK")
    with pytest.raises(UsageError, match="not one of the readable formats"):
        read_registry(str(tmp_path), ["tiny"], TYPES)


def test_unknown_datasets_and_broken_registries_are_named(tmp_path: Path) -> None:
    make_data(tmp_path, [GOOD_ROW])
    with pytest.raises(UsageError, match=r"has no dataset 'tiny2' \(did you mean tiny\?\)"):
        read_registry(str(tmp_path), ["tiny2"], TYPES)
    (tmp_path / "dataset_info.json").write_text("{")
    with pytest.raises(UsageError, match="not valid JSON"):
        read_registry(str(tmp_path), ["tiny"], TYPES)
    (tmp_path / "dataset_info.json").unlink()
    with pytest.raises(UsageError, match=r"has no dataset_info\.json"):
        read_registry(str(tmp_path), ["tiny"], TYPES)
    with pytest.raises(UsageError, match="no such folder"):
        read_registry(str(tmp_path / "nowhere"), ["tiny"], TYPES)


def test_data_of_a_hub_is_left_to_the_engine(tmp_path: Path) -> None:
    make_data(tmp_path, [], {"hf_hub_url": "owner/name"})
    dataset = read_registry(str(tmp_path), ["tiny"], TYPES)[0]
    assert dataset.files == ()
    assert check_dataset(dataset, "sft", TYPES) == (0, [])


def test_dataset_names_come_as_text_or_as_a_list() -> None:
    assert names_of("a, b,") == ["a", "b"]
    assert names_of(["a", "b"]) == ["a", "b"]
    assert names_of(None) == []
