"""The export stage: merge, shard, write, then prove that the result is the model that was trained."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow.errors import AmdflowError
from amdflow.export.config import ExportConfig
from amdflow.export.portable import make_portable, open_up
from amdflow.export.source import Source, find_source
from amdflow.export.verdict import judge
from amdflow.files import portable, write_atomic
from amdflow.findings import Finding
from amdflow.pipeline.stage import Outcome, Output, Plan, Request, Run, Stage
from amdflow.weights import read_weights

_INSIDE = Path(__file__).parent / "inside"
_TOOLS = ("llamafactory", "torch", "transformers", "peft", "safetensors")
_PROMPTS = ("What is a wavefront?", "Write a short poem about memory bandwidth.", "请用一句话介绍你自己。")


@dataclass(frozen=True)
class _Work:
    """The stage's work order."""

    source: Source
    config: ExportConfig
    python: Path
    environment: Mapping[str, str]


class ExportStage(Stage[ExportConfig]):
    """``amdflow export``."""

    name = "export"
    version = 1
    payload = "model"
    summary = "merge and write SafeTensors, then verify them"
    upstream = "finetune"
    config_type = ExportConfig

    def plan(self, request: Request[ExportConfig]) -> Plan:
        """Find what is to be exported and check that it is whole."""
        source = find_source(request)
        engine = request.toolchain.engine("finetune")
        config = request.config
        counted = config.model_dump(mode="json") | {
            "name": source.name,
            "template": source.template,
            "model": portable(Path(source.model), request.root),
        }
        if source.adapter is not None:
            counted["adapter"] = portable(source.adapter, request.root)
        what = f"adapter {counted['adapter']} into {counted['model']}" if source.adapter else counted["model"]
        steps = [
            f"{'merge ' if source.adapter else 'write '}{what}",
            f"as {config.dtype} SafeTensors of at most {config.shard_size:g} GB each, to be served as {source.name}",
            "verify: every tensor finite, index complete, shapes as the config says, tokenizer, logits against the trained model",
        ]
        tools = {name: engine.packages[name] for name in _TOOLS if name in engine.packages}
        local = Path(source.model).is_dir()
        return Plan(
            counted,
            source.inputs,
            tools,
            steps,
            job=_Work(source, config, engine.python, engine.environment(offline=local)),
            from_upstream=not (config.adapter or config.model),
        )

    def execute(self, plan: Plan, run: Run) -> Outcome:
        """Merge, then look at the result from a process of its own."""
        work: _Work = plan.job
        with run.terminal.progress("export", total=2, unit="steps") as bar:
            bar.update(note="merging")
            self._merge(work, run)
            changes = make_portable(run.payload)
            open_up(run.payload)
            bar.update(1, note="verifying")
            found = self._inside("check.py", _check_job(work, run), work, run)
            bar.update(1)
        verdict = judge(found, work.config.dtype, adapter=work.source.adapter is not None)
        outputs = [
            Output(path, "model", produced_by="llamafactory")
            for path in sorted(run.payload.iterdir())
            if path.is_file()
        ]
        handoff = {
            "model": run.payload_path,
            "name": work.source.name,
            "dtype": work.config.dtype,
            "template": work.source.template,
            "finetuning_type": work.source.finetuning_type,
            "trust_remote_code": work.config.trust_remote_code,
            "probe": {"prompt": work.config.probe},
        }
        return Outcome(
            outputs, verdict.findings, verdict.metrics | {"changes": changes}, handoff, verdict.not_exercised
        )

    def verify(self, plan: Plan, outcome: Outcome, run: Run) -> Sequence[Finding]:  # noqa: ARG002 - the files are looked at, not what was said of them
        """Every shard is whole on disk and the index fits: the last look before it is published."""
        weights = read_weights(run.payload)
        if weights is None:
            raise AmdflowError("the export wrote no SafeTensors files", hint=f"its log: {run.logs}")
        return ()

    def _merge(self, work: _Work, run: Run) -> None:
        source, config = work.source, work.config
        args: dict[str, Any] = {
            "model_name_or_path": source.model,
            "export_dir": str(run.payload),
            "export_size": config.shard_size,
            "export_device": "cpu",
            "infer_dtype": config.dtype,
            "trust_remote_code": config.trust_remote_code,
        }
        if source.template:
            args["template"] = source.template
        if source.adapter is not None:
            args |= {"adapter_name_or_path": str(source.adapter), "finetuning_type": source.finetuning_type}
        self._inside(
            "merge.py",
            {"args": args, "trained": str(source.adapter or source.model), "widen": config.dtype != "bfloat16"},
            work,
            run,
        )

    def _inside(self, script: str, job: Mapping[str, Any], work: _Work, run: Run) -> dict[str, Any]:
        """Run a script in the engine's environment and return what it found. Raises AmdflowError with its complaint."""
        stem = Path(script).stem
        job_file, result = run.logs / f"{stem}.json", run.logs / f"{stem}.result.json"
        write_atomic(job_file, json.dumps({**job, "result": str(result)}, indent=2, ensure_ascii=False))
        variables = {
            **work.environment,
            "HF_HOME": str(run.cache / "huggingface"),
            "LLAMAFACTORY_VERBOSITY": "WARN",
            "TQDM_DISABLE": "1",
            "PYTHONUTF8": "1",
        }
        if not Path(work.source.model).is_dir():
            del variables["HF_HOME"]  # a hub's models stay where the user keeps them
        done = run.call(
            [str(work.python), str(_INSIDE / script), str(job_file)],
            log="export.log",
            cwd=run.scratch,
            extra_env=variables,
            check=False,
        )
        try:
            found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            tail = [line for line in done.output.splitlines() if line.strip()][-4:]
            raise AmdflowError(
                f"{stem} ended with exit status {done.returncode} and said nothing"
                + "".join(f"\n    {line[:300]}" for line in tail),
                hint=f"its log: {run.logs / 'export.log'}",
            ) from error
        if found.get("error"):
            what = "the model cannot be exported" if stem == "merge" else "the exported model cannot be verified"
            raise AmdflowError(f"{what}: {found['error']}", hint=f"its log: {run.logs / 'export.log'}")
        return found


def _check_job(work: _Work, run: Run) -> dict[str, Any]:
    source = work.source
    return {
        "model": str(run.payload),
        "base": source.model,
        "adapter": str(source.adapter) if source.adapter else None,
        "prompts": [*_PROMPTS, work.config.probe],
        "probe": work.config.probe,
        "trust_remote_code": work.config.trust_remote_code,
    }


STAGE = ExportStage()
