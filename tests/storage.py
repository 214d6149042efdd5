"""The kinds of stores that tests keep state on: this machine's disk, a shared file system with rename, an object store without.

The object store is a real S3 endpoint, moto's, in a process of its own. The file system with rename is pyarrow's view of a directory,
which is not recognised as the local disk: what HDFS would be.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyarrow import fs

from muntin.spark.place import Place

KINDS = ("disk", "moving", "objects")


@contextmanager
def object_store() -> Iterator[str]:
    """The address of an S3 endpoint with a bucket `state`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(port, server)
        endpoint = f"127.0.0.1:{port}"
        options = {"access_key": "muntin", "secret_key": "secret", "scheme": "http", "region": "us-east-1"}
        fs.S3FileSystem(**options, endpoint_override=endpoint, allow_bucket_creation=True).create_dir("state")
        yield endpoint
    finally:
        server.kill()
        server.wait()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        assert server.poll() is None, "the S3 endpoint did not start: is moto installed?"
        assert time.monotonic() < deadline
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


def address(kind: str, name: str, *, directory: Path, endpoint: str) -> str:
    """What `place_at` takes: text, so that it can be handed to another process."""
    if kind == "objects":
        return f"s3://muntin:secret@state/{name}?scheme=http&endpoint_override={endpoint.replace(':', '%3A')}&region=us-east-1"
    return f"{kind}:{directory / name}"


def place_at(address: str) -> Place:
    kind, _, path = address.partition(":")
    if kind == "s3":
        return Place.of(address)
    if kind == "disk":
        return Place.of(Path(path))
    directory = Path(path)
    return Place.on(fs.SubTreeFileSystem(str(directory.parent), fs.LocalFileSystem()), directory.name, spark=f"file:{directory}")
