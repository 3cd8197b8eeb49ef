"""Asking a server: what it makes of good, odd and broken answers. A small HTTP server stands in for engines that misbehave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from amdflow.errors import AmdflowError
from amdflow.serve.smoke import ask, flaw


class Handler(BaseHTTPRequestHandler):
    """Answers what the test has laid down, and keeps what it was asked."""

    status: ClassVar[int] = 200
    body: ClassVar[bytes] = b""
    seen: ClassVar[dict[str, Any]] = {}

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        type(self).seen = {
            "path": self.path,
            "body": json.loads(self.rfile.read(size)),
            "authorization": self.headers.get("Authorization"),
        }
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def lay_down(body: Any, status: int = 200) -> None:
    Handler.status, Handler.body = status, body if isinstance(body, bytes) else json.dumps(body).encode()


def test_a_chat_completion_is_asked_for_at_temperature_0_past_any_proxy(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    lay_down(
        {
            "choices": [{"message": {"content": "It draws."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 3},
        }
    )
    answer = ask(url, "m", "What?", chat=True, key="k")
    assert (answer.text, answer.completion_tokens, answer.prompt_tokens, answer.finish_reason) == (
        "It draws.",
        3,
        5,
        "stop",
    )
    assert answer.tokens_per_second > 0
    assert Handler.seen["path"] == "/v1/chat/completions"
    assert Handler.seen["body"]["temperature"] == 0
    assert Handler.seen["body"]["messages"] == [{"role": "user", "content": "What?"}]
    assert Handler.seen["authorization"] == "Bearer k"


def test_a_model_without_a_chat_template_is_asked_for_a_plain_completion(url: str) -> None:
    lay_down({"choices": [{"text": " draws", "finish_reason": None}], "usage": None})
    answer = ask(url, "m", "A GPU", chat=False)
    assert (answer.text, answer.path, answer.completion_tokens) == (" draws", "/v1/completions", 0)
    assert Handler.seen["body"]["prompt"] == "A GPU"


def test_an_answer_of_none_is_empty_text(url: str) -> None:
    lay_down({"choices": [{"message": {"content": None}}]})
    assert ask(url, "m", "What?", chat=True).text == ""


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"choices": []}', b'{"choices": [{}]}', b"null"])
def test_an_answer_of_another_shape_is_an_error_not_a_traceback(url: str, body: bytes) -> None:
    lay_down(body)
    with pytest.raises(AmdflowError, match="not a completion"):
        ask(url, "m", "What?", chat=True)


def test_a_refusal_and_a_silent_server_are_told_apart(url: str) -> None:
    lay_down({"error": "no such model"}, status=404)
    with pytest.raises(AmdflowError, match=r"HTTP 404.*no such model"):
        ask(url, "m", "What?", chat=True)
    with pytest.raises(AmdflowError, match="did not answer the smoke test: ConnectError"):
        ask("http://127.0.0.1:9", "m", "What?", chat=True)


@pytest.mark.parametrize(
    "good",
    [
        "Yes.",
        "A GPU computes many things at once.",
        "波前有六十四个线程。",
        "the cat and the dog and the bird",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
        "```c\nint a;\n```",
    ],
)
def test_real_answers_pass(good: str) -> None:
    assert flaw(good) == ""


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("the the the the the the the the", "repeats one word"),
        ("!!!!!!!!!!!!!!!!", "repeats one character"),
        ("\ufffd\ufffda\ufffd\u0006b\ufffd", "no text"),
    ],
)
def test_empty_repeated_and_garbled_answers_are_seen(bad: str, why: str) -> None:
    assert why in flaw(bad)
