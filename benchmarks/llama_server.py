"""llama-server as a peer: start it, send it prompts, read its own clock."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

_PATIENCE = 180.0


class LlamaServer:
    """A running llama-server with one slot. A context manager."""

    def __init__(
        self, binary: Path, model: Path, context: int, threads: int, more: Sequence[str] = ()
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        command = [
            str(binary),
            *("--model", str(model)),
            *("--ctx-size", str(context)),
            *("--threads", str(threads)),
            *("--parallel", "1"),
            *("--batch-size", "512", "--ubatch-size", "512"),
            *("--host", "127.0.0.1", "--port", str(self._port)),
            *("--jinja", "--no-warmup"),
            *more,
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self) -> "LlamaServer":
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise SystemExit(f"llama-server ended with {self._process.returncode}.")
            try:
                with urllib.request.urlopen(self._url("/health"), timeout=5) as answer:
                    if answer.status == 200:
                        return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        self._process.kill()
        raise SystemExit("llama-server did not start in time.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()

    def complete(self, ids: Sequence[int], count: int, *, cached: bool = False) -> dict[str, Any]:
        """Greedy text after the tokens `ids`: `tokens` and `timings` (milliseconds, the server's own)."""
        return self._post(
            "/completion",
            {
                "prompt": list(ids),
                "n_predict": count,
                "temperature": 0,
                "cache_prompt": cached,
                "return_tokens": True,
            },
        )

    def chat(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], count: int) -> dict[str, Any]:
        """A turn of a conversation, as other clients ask for it."""
        return self._post(
            "/v1/chat/completions",
            {
                "messages": messages,
                "tools": tools,
                "max_tokens": count,
                "temperature": 0,
                "cache_prompt": True,
            },
        )

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            self._url(path), json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return json.load(answer)

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._port}{path}"
