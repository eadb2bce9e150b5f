"""Serve the rendered book on this machine, where its playgrounds run: book/read.py [PORT]."""

from __future__ import annotations

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGES = Path(__file__).resolve().parents[1] / "_build" / "html"


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing of every request."""

    def log_message(self, *_: object) -> None:
        """A reader's terminal has one line, the address."""


def main(port: str = "8000") -> int:
    """Serve until Ctrl-C; a sentence and 2 where that cannot be."""
    if not port.isdecimal() or int(port) > 65535:
        return _sorry(f"{port} is no port; say a number up to 65535, like make read PORT=8080.")
    if not (PAGES / "index.html").exists():
        return _sorry("there is no rendered book; make book renders it.")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", int(port)), partial(Quiet, directory=PAGES))
    except OSError as error:
        return _sorry(f"port {port}: {error.strerror}; try another, like make read PORT=8080.")
    with server:
        print(f"== http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def _sorry(sentence: str) -> int:
    print(f"read: {sentence}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
