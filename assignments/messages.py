"""How the grader and its sandbox talk over pipes: a JSON header and bytes."""

from __future__ import annotations

import json
import struct
from typing import BinaryIO


def send(stream: BinaryIO, header: dict, payload: bytes = b"") -> None:
    """Write a message."""
    head = json.dumps(header).encode()
    stream.write(struct.pack(">QQ", len(head), len(payload)) + head + payload)
    stream.flush()


def _all(stream: BinaryIO, size: int) -> bytes:
    """So many bytes, or fewer at the end of the stream."""
    found = bytearray()
    # A pipe gives little at a time, and room for all that is left would be made each time.
    while len(found) < size and (piece := stream.read(min(size - len(found), 1 << 20))):
        found += piece
    return bytes(found)


def receive(stream: BinaryIO) -> tuple[dict, bytes] | None:
    """Read a message; nothing at the end of the stream."""
    sizes = _all(stream, 16)
    if len(sizes) < 16:
        return None
    head, payload = struct.unpack(">QQ", sizes)
    return json.loads(_all(stream, head)), _all(stream, payload)
