"""Files that are either there, whole and unharmed, or not there: what the slice log and the checkpoint are made of.

In: a header (JSON) and blobs of bytes. Out: one file: mark, header, blobs, SHA-256 of all of it. Convention: written aside, flushed to
disk, renamed; a file that does not check is a `CheckpointError` that names it, never a silent default.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muntin.errors import CheckpointError

MARK = b"MUNTIN1\n"
_DIGEST = hashlib.sha256().digest_size


def write(path: Path, header: dict[str, Any], blobs: Sequence[bytes | memoryview] = ()) -> int:
    """Write the file atomically; returns its size."""
    text = json.dumps(header | {"blobs": [len(blob) for blob in blobs]}, sort_keys=True).encode()
    digest = hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.aside")
    size = 0
    with aside.open("wb") as file:
        for piece in (MARK, len(text).to_bytes(8, "big"), text, *blobs):
            file.write(piece)
            digest.update(piece)
            size += len(piece)
        file.write(digest.digest())
        file.flush()
        os.fsync(file.fileno())
    publish(aside, path)
    return size + _DIGEST


def publish(aside: Path, path: Path) -> None:
    """Rename into place and make the rename itself durable."""
    aside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(path: Path) -> tuple[dict[str, Any], list[memoryview]]:
    """The header and the blobs, checked."""
    try:
        content = memoryview(path.read_bytes())
    except FileNotFoundError:
        raise damaged(path, "the file is missing") from None
    if bytes(content[: len(MARK)]) != MARK:
        raise damaged(path, "it does not begin as a file of this format does")
    body, digest = content[:-_DIGEST], bytes(content[-_DIGEST:])
    if hashlib.sha256(body).digest() != digest:
        raise damaged(path, "its checksum does not match its content")
    start = len(MARK) + 8
    end = start + int.from_bytes(body[len(MARK) : start], "big")
    header: dict[str, Any] = json.loads(bytes(body[start:end]))
    blobs = []
    for length in header["blobs"]:
        blobs.append(body[end : end + length])
        end += length
    return header, blobs


def damaged(path: Path, values: str) -> CheckpointError:
    return CheckpointError(
        "every file of a checkpoint is there and unharmed",
        values=f"{path}: {values}",
        way_out="restore the checkpoint directory from a copy, or start again with a new checkpoint and a new output directory",
    )
