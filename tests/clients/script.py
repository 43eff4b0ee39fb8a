"""The task that every client stack completes, and a model that knows nothing but it.

The model reads what the tools answer, as a language model would: it finds the window by its title and the elements by
their labels in the text it was given. Without those answers it gets nowhere. Standard library only: it runs in the
environments of other packages.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

TEXT = "Ada Lovelace"
DONE = "The form is filled in and sent."


class Step(NamedTuple):
    tool: str
    arguments: dict[str, Any]


class Stuck(Exception):
    """What the tools answered does not lead on."""


def next_step(title: str, answers: list[str]) -> Step | None:
    """Return the next call after these answers, or None when the task is done."""
    if not answers:
        return Step("list_windows", {})
    if len(answers) == 1:
        return Step("observe", {"window": _found(rf'(\S+) window "{re.escape(title)}"', answers[0])})
    window = answers[1]
    for answer in answers[2:]:
        if not answer.startswith("done"):
            raise Stuck(answer)
    if len(answers) == 2:
        return Step("set_value", {"target": _found(r'\[(e\d+)\] text label="Name"', window), "value": TEXT})
    if len(answers) == 3:
        return Step("toggle", {"target": _found(r'\[(e\d+)\] togglebutton "Bold"', window), "to": True})
    if len(answers) == 4:
        return Step("invoke", {"target": _found(r'\[(e\d+)\](?: button)? "Count"', window)})
    return None


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise Stuck(f"{pattern} is not in: {text[:2000]}")
    return match[1]


class Model:
    """Answers like a chat completions endpoint, from the task and the tool results in the conversation."""

    def __init__(self, title: str) -> None:
        self._title = title
        #: The tools that were offered with the first question.
        self.offered: list[dict[str, Any]] = []
        self.asked = 0
        self.stuck: str | None = None

    def complete(self, question: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        self.offered = self.offered or question.get("tools", [])
        answers = [_text(one["content"]) for one in question["messages"] if one["role"] == "tool"]
        message: dict[str, Any] = {"role": "assistant", "content": None}
        reason = "stop"
        try:
            step = next_step(self._title, answers)
        except Stuck as error:
            self.stuck = str(error)
            step, message["content"] = None, "I am stuck."
        if step is not None:
            function = {"name": step.tool, "arguments": json.dumps(step.arguments)}
            message["tool_calls"] = [{"id": f"call_{self.asked}", "type": "function", "function": function}]
            reason = "tool_calls"
        elif message["content"] is None:
            message["content"] = DONE
        return {
            "id": f"answer-{self.asked}",
            "object": "chat.completion",
            "created": 0,
            "model": question.get("model", "scripted"),
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }


def _text(content: Any) -> str:
    """Return a tool message's text, as the client stack put it: plain, as parts, or as JSON of parts."""
    if isinstance(content, str):
        try:
            value = json.loads(content)
        except ValueError:
            return content
        return _text(value) if isinstance(value, dict | list) else content
    if isinstance(content, dict):
        return str(content.get("text", ""))
    return "\n".join(_text(part) for part in content)


@contextmanager
def serving(model: Model) -> Iterator[str]:
    """Serve a model on loopback; yields its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if not self.path.endswith("/chat/completions"):
                self.send_error(404)
                return
            data = json.dumps(model.complete(json.loads(body))).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
