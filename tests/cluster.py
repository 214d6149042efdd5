"""A real standalone cluster on loopback: one master and some workers, processes of their own, from the installed PySpark.

In: how many workers, with how many cores and how much memory each. Out: the address of the master, and processes to kill.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

PATIENCE_SECONDS = 300
#: For drivers: on loopback, with little memory, and patient where the machine is busy with other things.
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "768m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:-DontCompileHugeMethods -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.network.timeout": "600s",
}


@dataclass
class Cluster:
    directory: Path
    master: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_master(self) -> None:
        self._start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.master = self._told("master", r"Starting Spark master at (spark://\S+)")

    def start_worker(self, name: str, *, cores: int = 1, memory: str = "1g", core: int | None = None) -> None:
        """`core` is the one that the worker, its executors and their Python are to stay on."""
        work = ("--work-dir", str(self.directory / f"{name}-work"), "--webui-port", "0")
        size = ("--host", "127.0.0.1", "--cores", str(cores), "--memory", memory)
        pinned = () if core is None else ("taskset", "-c", str(core))
        self._start(name, "org.apache.spark.deploy.worker.Worker", *size, *work, self.master, before=pinned)
        self._told(name, r"(Successfully registered with master)")

    def complete(self, workers: int = 2) -> None:
        """Start those workers that are not there."""
        for name in (f"worker{number}" for number in range(workers)):
            if name not in self.processes:
                self.start_worker(name)

    def kill(self, name: str) -> None:
        """The worker and its executors, as a machine that goes down; or a driver, if it is there."""
        process = self.processes.pop(name, None)
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def said(self, name: str) -> str:
        """The end of what a process wrote."""
        return (self.directory / f"{name}.log").read_text()[-3000:]

    def stop(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    def _start(self, name: str, *command: str, before: Sequence[str] = ()) -> None:
        spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
        # A machine that is busy with other things is not a machine that has gone down.
        patient = {"SPARK_DAEMON_JAVA_OPTS": "-Dspark.worker.timeout=600 -XX:+UseSerialGC", "SPARK_DAEMON_MEMORY": "256m"}
        # Without a search path: what executors have of Muntin was sent to them.
        alone = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYTHONPATH": ""}
        self.run(name, [*before, str(spark_class), *command], patient | alone)

    def run(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A process that ends with the cluster, at the latest; `kill` ends those that it started as well."""
        with (self.directory / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"} | environment,
                start_new_session=True,
            )
        return self.processes[name]

    def _told(self, name: str, pattern: str) -> str:
        log, patience = self.directory / f"{name}.log", time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < patience:
            found = re.search(pattern, log.read_text())
            if found:
                return found.group(1)
            if self.processes[name].poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"{name} did not say {pattern!r}:\n{self.said(name)}")


@contextmanager
def running_cluster(directory: Path, *, workers: int = 2) -> Iterator[Cluster]:
    cluster = Cluster(directory)
    try:
        cluster.start_master()
        cluster.complete(workers)
        yield cluster
    finally:
        cluster.stop()
