"""One real question to a server that says it is ready."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from amdflow.errors import AmdflowError

DEFAULT_PROMPT = "In one short sentence: what does a GPU do?"
MAX_TOKENS = 128
_MOSTLY = 0.6
_ENOUGH = 8


@dataclass(frozen=True)
class Answer:
    """A question, what came back, and how fast. ``seconds`` counts from request to whole answer."""

    prompt: str
    text: str
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str
    path: str
    """``/v1/chat/completions``, or ``/v1/completions`` for a model without a chat template."""

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens over the whole time, prompt included."""
        return self.completion_tokens / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "tokens_per_second": round(self.tokens_per_second, 2)}


def ask(url: str, model: str, prompt: str, *, chat: bool, key: str = "", timeout: float = 300.0) -> Answer:
    """Ask at temperature 0. Raises AmdflowError when the server refuses, breaks off, or answers in another shape."""
    import httpx

    path = "/v1/chat/completions" if chat else "/v1/completions"
    body: dict[str, Any] = {"model": model, "temperature": 0, "max_tokens": MAX_TOKENS}
    body |= {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
    began = time.monotonic()
    try:
        # proxies of the environment are for the world outside, not for a server on this machine
        with httpx.Client(
            trust_env=False, timeout=timeout, headers={"Authorization": f"Bearer {key}"} if key else {}
        ) as client:
            response = client.post(f"{url}{path}", json=body)
    except httpx.HTTPError as error:
        raise AmdflowError(
            f"the server did not answer the smoke test: {type(error).__name__} {error}".rstrip(),
            hint="amdflow endpoint logs",
        ) from error
    seconds = time.monotonic() - began
    if response.status_code != 200:
        raise AmdflowError(
            f"the server refused the smoke test with HTTP {response.status_code}: {response.text[:300]}",
            hint="amdflow endpoint logs",
        )
    try:
        data = response.json()
        choice = data["choices"][0]
        text = (choice["message"]["content"] if chat else choice["text"]) or ""
        usage = data.get("usage") or {}
        return Answer(
            prompt,
            str(text),
            round(seconds, 3),
            int(usage.get("prompt_tokens") or 0),
            int(usage.get("completion_tokens") or 0),
            str(choice.get("finish_reason") or ""),
            path,
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise AmdflowError(
            f"the server's answer is not a completion: {response.text[:300]}", hint="amdflow endpoint logs"
        ) from error


def flaw(answer: str) -> str:
    """What is wrong with an answer on the face of it: empty, one word or character over and over, or bytes that are no text; else nothing."""
    text = answer.strip()
    if not text:
        return "it is empty"
    words = text.split()
    for parts, kind in ((words, "word"), (list(text.replace(" ", "")), "character")):
        piece, count = Counter(parts).most_common(1)[0]
        if len(parts) >= _ENOUGH and count / len(parts) > _MOSTLY:
            return f"it repeats one {kind} ({piece[:20]!r}, {count} times of {len(parts)})"
    odd = sum(character == "\ufffd" or not (character.isprintable() or character.isspace()) for character in text)
    if odd / len(text) > 0.1:
        return f"{odd} of its {len(text)} characters are no text"
    return ""
