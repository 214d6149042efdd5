"""A real Kafka broker for tests, of one node, in a process of its own; and Spark's connector for it.

In: jars, from the directory MUNTIN_KAFKA_JARS (its folders `broker` and `spark`), or fetched once with Maven. Out: the broker's address.
Convention: topics come to be when they are first written to, with as many partitions as are asked for. Where jars cannot be had, the test
that wants them is skipped, and says why.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KAFKA, CONNECTOR = "4.1.0", "4.2.0"
BROKER = [f"org.apache.kafka:kafka_2.13:{KAFKA}"]
SPARK = [
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{CONNECTOR}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
]
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>muntin</groupId><artifactId>jars</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>"""
SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={directory}/log
num.partitions={partitions}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def jars(which: str) -> list[Path]:
    """The jars of the broker or of Spark's connector."""
    home = Path(os.environ.get("MUNTIN_KAFKA_JARS", Path.home() / ".cache" / "muntin" / "kafka"))
    folder = home / which
    if not list(folder.glob("*.jar")):
        fetch(folder, BROKER if which == "broker" else SPARK, transitive=which == "broker")
    return sorted(folder.glob("*.jar"))


def fetch(folder: Path, artifacts: list[str], *, transitive: bool) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("there is no Maven to fetch Kafka's jars with; MUNTIN_KAFKA_JARS may name a directory that has them")
    folder.mkdir(parents=True, exist_ok=True)
    parts = (one.split(":") for one in artifacts)
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in parts
    )
    (folder / "pom.xml").write_text(POM.format(dependencies=dependencies))
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"] + ([] if transitive else ["-DexcludeTransitive=true"])
    done = subprocess.run(["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), *goal], capture_output=True, timeout=600, check=False)
    if not list(folder.glob("*.jar")):
        pytest.skip(f"Kafka's jars cannot be fetched: {done.stdout.decode()[-300:]}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def kafka_broker(directory: Path, *, partitions: int) -> Iterator[str]:
    """A broker's address, while it runs."""
    port = free_port()
    settings = directory / "server.properties"
    directory.mkdir(parents=True, exist_ok=True)
    settings.write_text(SETTINGS.format(port=port, controller=free_port(), directory=directory, partitions=partitions))
    java = ["java", "-Xmx256m", "-cp", os.pathsep.join(map(str, jars("broker")))]
    format = [*java, "kafka.tools.StorageTool", "format", "-t", "bXVudGlubXVudGlubXVudA", "-c", str(settings)]
    subprocess.run(format, check=True, capture_output=True, timeout=120)
    with (directory / "broker.log").open("wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log, start_new_session=True)
        try:
            wait_for(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, "the broker has ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError("the broker does not answer")
