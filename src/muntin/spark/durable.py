"""Files that are either there, whole and unharmed, or not there: what the slice log and the checkpoint are made of.

In: a header (JSON) and blobs of bytes. Out: one file: mark, header, blobs, SHA-256 of all of it. Convention: how a file comes to be
there whole is the business of its `Place`; a file that does not check is a `CheckpointError` that names it, never a silent default.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from muntin.errors import CheckpointError
from muntin.spark.place import Place

MARK = b"MUNTIN1\n"
_DIGEST = hashlib.sha256().digest_size


def write(place: Place, header: dict[str, Any], blobs: Sequence[bytes | memoryview] = ()) -> int:
    """Write the file atomically; returns its size."""
    text = json.dumps(header | {"blobs": [len(blob) for blob in blobs]}, sort_keys=True).encode()
    pieces = (MARK, len(text).to_bytes(8, "big"), text, *blobs)
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    place.write(*pieces, digest.digest())
    return sum(map(len, pieces)) + _DIGEST


def read(place: Place) -> tuple[dict[str, Any], list[memoryview]]:
    """The header and the blobs, checked."""
    try:
        content = place.read()
    except FileNotFoundError:
        raise damaged(place, "the file is missing") from None
    if bytes(content[: len(MARK)]) != MARK:
        raise damaged(place, "it does not begin as a file of this format does")
    body, digest = content[:-_DIGEST], bytes(content[-_DIGEST:])
    if hashlib.sha256(body).digest() != digest:
        raise damaged(place, "its checksum does not match its content")
    start = len(MARK) + 8
    end = start + int.from_bytes(body[len(MARK) : start], "big")
    header: dict[str, Any] = json.loads(bytes(body[start:end]))
    blobs = []
    for length in header["blobs"]:
        blobs.append(body[end : end + length])
        end += length
    return header, blobs


def damaged(place: Place, values: str) -> CheckpointError:
    return CheckpointError(
        "every file of a checkpoint is there and unharmed",
        values=f"{place}: {values}",
        way_out="restore the checkpoint directory from a copy, or start again with a new checkpoint and a new output directory",
    )
