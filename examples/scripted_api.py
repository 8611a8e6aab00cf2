"""A stand-in for the model's API on this machine, so that `sdk_program.py` needs no key and no network.

It answers each request with the next turn of a script: `{"text": …}` or `{"tools": [[name, input], …]}`. Nothing of
it concerns hooks; your own program talks to the real API.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Turn = dict[str, Any]


@contextmanager
def scripted_api(*turns: Turn) -> Iterator[str]:
    """Serve the turns; what it yields is the address for ANTHROPIC_BASE_URL."""
    left = list(turns)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            main = "messages" in request and request.get("tools")  # side questions have no tools
            turn = (left.pop(0) if len(left) > 1 else left[0]) if main else {"text": "{}"}
            body = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in stream(turn)).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exception(), ConnectionError):  # a CLI that ends may leave before its answer comes
                super().handle_error(request, client_address)

    server = Server(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def stream(turn: Turn) -> Iterator[dict[str, Any]]:
    """One answer of the model as the events of its stream."""
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
    }
    message["usage"] = {"input_tokens": 1, "output_tokens": 1}
    yield {"type": "message_start", "message": message}
    for index, (start, delta) in enumerate(blocks(turn)):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if "tools" in turn else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def blocks(turn: Turn) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each piece of an answer: how it starts, and what is in it."""
    if "text" in turn:
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": turn["text"]}
    for number, (name, given) in enumerate(turn.get("tools", [])):
        start = {"type": "tool_use", "id": f"toolu_{id(turn)}_{number}", "name": name, "input": {}}
        yield start, {"type": "input_json_delta", "partial_json": json.dumps(given)}
