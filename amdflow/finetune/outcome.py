"""What a training left behind: files with their roles, figures, and what export needs to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amdflow.files import portable, write_json
from amdflow.finetune.events import thin
from amdflow.finetune.planning import Job
from amdflow.finetune.training import Result
from amdflow.pipeline.stage import Outcome, Output, Run

_LOGS = ("trainer_log.jsonl",)
_METRICS = ("all_results.json", "train_results.json", "eval_results.json", "trainer_state.json")
_AHEAD = "ahead of time"
"""How the operators' launcher begins the origin of a kernel that it loaded from a code object."""
# A pickle of the trainer's own settings: nobody else needs it, and it should not be loaded.
_LEFT_OUT = ("training_args.bin",)


def kind_of_result(args: Mapping[str, Any]) -> str:
    """``adapter`` or ``model``."""
    return "adapter" if args.get("finetuning_type", "lora") in ("lora", "oft") else "model"


def collect(job: Job, kernels: Mapping[str, Sequence[str]], result: Result, run: Run) -> Outcome:
    """Outputs, metrics and handoff of a finished training."""
    kind = kind_of_result(job.args)
    _open_up(run)
    outputs = [
        Output(path, role, produced_by="llamafactory")
        for path in sorted(run.payload.iterdir())
        if path.is_file() and (role := _role(path, kind))
    ]
    if job.findings:
        listed = {"schema": "amdflow/findings", "version": "1.0", "findings": [item.to_json() for item in job.findings]}
        write_json(run.scratch / "findings.json", listed)
        outputs.append(Output(run.scratch / "findings.json", "report", produced_by="amdflow"))
    rows = operator_rows(job, result, run.root)
    called = {asked: origin.replace(f"{run.root}/", "") for asked, origin in result.facts.get("kernels", {}).items()}
    if rows:
        left_out = result.facts.get("operators_left_out", {})
        head = {"schema": "amdflow/operators", "version": "1.0"}
        write_json(run.scratch / "operators.json", {**head, "operators": rows, "left_out": left_out, "kernels": called})
        outputs.append(Output(run.scratch / "operators.json", "report", produced_by="amdflow"))
    base = portable(job.base.folder, run.root) if job.base.folder else job.base.name
    handoff = {
        "base_model": base,
        "base_name": job.base.name,
        "base_is_local": job.base.folder is not None,
        "finetuning_type": job.args.get("finetuning_type", "lora"),
        "stage": job.args.get("stage", "sft"),
        "adapter": run.payload_path if kind == "adapter" else None,
        "model": run.payload_path if kind == "model" else None,
        "template": job.args.get("template") or "",
        "trust_remote_code": bool(job.args.get("trust_remote_code")),
        "kernels_available": dict(kernels),
    }
    metrics = _metrics(job, result, run.root) | ({"operators": [_summary(row, called) for row in rows]} if rows else {})
    return Outcome(outputs, job.findings, metrics, handoff, _not_exercised(result))


def operator_rows(job: Job, result: Result, root: Path) -> list[dict[str, Any]]:
    """What became of each chosen operator: its modules with their calls, and where its kernels come from."""
    origins = job.operators.origins(root)
    rows = []
    for row in result.facts.get("operators", []):
        names = job.operators.calls.get(row["op"], ())
        rows.append(row | {"target": job.operators.target, "kernels": {name: origins.get(name, "") for name in names}})
    return rows


def _summary(row: Mapping[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    origins = [origin for asked, origin in called.items() if asked.partition(" ")[0] in row["kernels"]]
    loaded = sum(origin.startswith(_AHEAD) for origin in origins)
    return {
        "op": row["op"],
        "modules": len(row["modules"]),
        "calls": row["calls"],
        "in_compiled_graphs": len(row["compiled"]),
        "left_as_they_were": len(row["declined"]),
        "target": row["target"],
        "code_objects_loaded": loaded,
        "compiled_at_first_use": len(origins) - loaded,
        "kernels": sorted(set(row["kernels"].values())),
    }


def _open_up(run: Run) -> None:
    """SafeTensors files are written for their owner only; give them the mode that other files get here."""
    mode = (run.scratch / "result.json").stat().st_mode
    for path in run.payload.rglob("*.safetensors"):
        path.chmod(mode)


def _role(path: Path, kind: str) -> str:
    if path.name in _LEFT_OUT or path.name.startswith("."):
        return ""
    if path.name in _LOGS:
        return "log"
    if path.name in _METRICS:
        return "metrics"
    return "report" if path.suffix in (".png", ".md") else kind


def _metrics(job: Job, result: Result, root: Path) -> dict[str, Any]:
    history, facts = result.history, result.facts
    tail = [loss for _step, loss in history.loss[-10:]]
    figures = {
        "config": portable(job.source, root),
        "base_model": job.base.name,
        "rows": job.rows,
        "steps": history.loss[-1][0] if history.loss else 0,
        "resumed_from": history.resumed_from,
        "first_loss": round(history.loss[0][1], 6) if tail else None,
        "final_loss": round(tail[-1], 6) if tail else None,
        "mean_loss_of_last_10_steps": round(sum(tail) / len(tail), 6) if tail else None,
        "tokens": history.tokens,
        "tokens_per_second": round(history.tokens_per_second, 1),
        "train_seconds": round(history.train_seconds, 1),
        "loss": _rounded(history.loss),
        "eval_loss": _rounded(history.evaluations),
    }
    return figures | {name: facts.get(name) for name in ("device", "processes", "peak_rss_mb", "peak_gpu_mb")}


def _rounded(points: list[tuple[int, float]]) -> list[list[float]]:
    return [[step, round(loss, 6)] for step, loss in thin(points)]


def _not_exercised(result: Result) -> list[str]:
    if result.facts.get("device") != "cpu":
        return []
    said = ["training on a GPU: this one ran on the CPU"]
    return [*said, "the operators on a GPU: their kernels ran as C code"] if result.facts.get("operators") else said
