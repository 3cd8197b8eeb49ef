"""The serve stage: check, start, ask, and leave the server running when that is wanted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amdflow import process
from amdflow.errors import AmdflowError
from amdflow.files import portable, write_json
from amdflow.findings import Effort, Finding, Severity
from amdflow.pipeline.stage import Outcome, Output, Plan, Request, Run, Stage
from amdflow.serve.config import ServeConfig
from amdflow.serve.endpoint import DRAIN_SECONDS, ENDPOINT_NAME, Endpoint
from amdflow.serve.planning import Job, make_plan
from amdflow.serve.server import Server, failure, start, wait_ready
from amdflow.serve.smoke import Answer, ask, flaw

_SMOKE_NAME = "smoke.json"
_FAILED_GRACE = 5.0


class ServeStage(Stage[ServeConfig]):
    """Serves a model directory; see :class:`~amdflow.serve.config.ServeConfig`."""

    name = "serve"
    version = 1
    payload = "."
    summary = "start an OpenAI-compatible server and ask it a question"
    upstream = "export"
    cached = False
    config_type = ServeConfig

    def plan(self, request: Request[ServeConfig]) -> Plan:
        """Resolve model, engine, profile and port; refuse what cannot work."""
        return make_plan(request)

    def execute(self, plan: Plan, run: Run) -> Outcome:
        """Start, wait, ask; stop again unless the server is to stay."""
        job: Job = plan.job
        record = run.cache / ENDPOINT_NAME
        _refuse_second(record)
        _announce(job, run)
        server = start(
            job.choice.engine,
            job.order,
            folder=run.logs,
            root=run.root,
            profile=job.profile.name,
            detached=job.keep is True,
            trouble=job.trouble,
        )
        try:
            ready = wait_ready(server, timeout=job.ready_timeout, terminal=run.terminal, key=job.order.key)
            answer = _ask(server, job)
            endpoint = _settle(server, job, run, record)
        except BaseException:
            server.stop(_FAILED_GRACE)
            raise
        endpoint.save(run.scratch / ENDPOINT_NAME)
        transcript = {
            "schema": "amdflow/smoke",
            "version": "1.0",
            "model": endpoint.served_name,
            "engine": endpoint.engine,
            **answer.to_json(),
        }
        write_json(run.scratch / _SMOKE_NAME, transcript)
        return Outcome(
            outputs=[
                Output(run.scratch / ENDPOINT_NAME, "endpoint", endpoint.engine),
                Output(run.scratch / _SMOKE_NAME, "transcript", endpoint.engine),
            ],
            findings=_findings(answer, chat=job.order.model.chat_template),
            metrics=_metrics(job, ready, answer),
            handoff={"url": endpoint.url, "model": endpoint.served_name, "engine": endpoint.engine},
            not_exercised=_not_exercised(job),
        )


STAGE = ServeStage()


def _refuse_second(record: Path) -> None:
    previous = Endpoint.load(record)
    if previous is not None and previous.alive():
        raise AmdflowError(
            f"this workdir already serves {previous.served_name} at {previous.url} (pid {previous.pid})",
            hint="amdflow endpoint stop",
        )
    record.unlink(missing_ok=True)


def _announce(job: Job, run: Run) -> None:
    for remark in job.remarks:
        run.terminal.warn(remark)
    run.terminal.say(
        f"  engine: {job.choice.reason} ({job.choice.version}); profile: {job.profile.name} ({job.profile.reason})"
    )
    run.terminal.say(f"  log: {portable(run.logs / 'server.log', Path.cwd())}")


def _ask(server: Server, job: Job) -> Answer:
    try:
        return ask(
            server.endpoint.url,
            server.endpoint.served_name,
            job.prompt,
            chat=job.order.model.chat_template,
            key=job.order.key,
        )
    except AmdflowError as error:
        process.check_cancelled()
        raise failure(server, error.message) from error


def _settle(server: Server, job: Job, run: Run, record: Path) -> Endpoint:
    """Stop the server, or write down where it is and leave it running."""
    if job.keep:
        server.endpoint.save(record)
        if job.keep is True:
            server.child.let_go()
        return server.endpoint
    run.terminal.say("  it answered; stopping it again")
    status = server.stop(DRAIN_SECONDS)
    process.check_cancelled()
    done = process.Completed(tuple(server.launch.argv), status or 0, "", "", time.monotonic() - server.child.started)
    run.record(done, cwd=server.launch.work, env=server.launch.variables, log=server.log)
    return server.endpoint.ended()


def _findings(answer: Answer, *, chat: bool) -> list[Finding]:
    found = []
    wrong = flaw(answer.text)
    if wrong:
        found.append(
            Finding(
                "AMF7001",
                Severity.SILENT,
                f"the smoke test's answer looks wrong: {wrong}",
                title="the served model's answer looks wrong",
                fix="ask the same model with --engine transformers: if that is right, the engine is at fault (try other --engine-arg values), else the model",
                effort=Effort.HOURS,
                extra={"prompt": answer.prompt, "answer": answer.text[:500]},
            )
        )
    if not chat:
        found.append(
            Finding(
                "AMF7002",
                Severity.NOTE,
                "the model has no chat template: /v1/chat/completions will not work as its users expect; the smoke test used /v1/completions",
                title="no chat template",
                fix="copy chat_template.jinja of the base model into the model's folder, or export with a template",
                path="tokenizer_config.json",
            )
        )
    return found


def _metrics(job: Job, ready: float, answer: Answer) -> dict[str, Any]:
    return {
        "engine": job.choice.engine.name,
        "left_running": bool(job.keep),
        "device": job.order.device,
        "ready_seconds": round(ready, 1),
        "tokens_per_second": round(answer.tokens_per_second, 1),
        "answer_seconds": answer.seconds,
        "completion_tokens": answer.completion_tokens,
        "prompt": answer.prompt,
        "answer": answer.text,
    }


def _not_exercised(job: Job) -> Sequence[str]:
    if job.order.device != "cpu":
        return ()
    return (
        f"{job.choice.engine.name} ran on the CPU: no HIP, AITER or quantized kernel, and no GPU launch profile, was exercised",
    )
