"""The machine a number was measured on: without it a time says nothing.

In: nothing. Out: a `Machine`, taken before the measurement starts, since the measurement itself raises the load; and `Elsewhere`, how much
of the processor others had while it ran. Convention: both come from `/proc`; where there is none, numbers are zero.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.processes import Spent

#: From this load average on, before the start, times are not to be relied upon; nor if others had this many cores while it ran.
BUSY = 1.5
SHARED = 0.3
PACKAGES = ("pyspark", "numpy", "pyarrow")


@dataclass(frozen=True)
class Machine:
    """Where and when a benchmark ran. `load` is the average over 1, 5 and 15 minutes just before it began."""

    when: str
    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str
    java: str
    packages: dict[str, str]
    commit: str
    load: tuple[float, float, float]

    @property
    def busy(self) -> bool:
        return self.load[0] > BUSY

    def lines(self) -> list[str]:
        """For the head of a report."""
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        load = ", ".join(f"{one:.2f}" for one in self.load)
        return [
            f"- {self.when}, commit {self.commit}",
            f"- {self.processor}, {self.cores} cores, {self.memory_gib:.0f} GiB, {self.system}",
            f"- Python {self.python}, Java {self.java}, {packages}",
            f"- load average over 1, 5 and 15 minutes before the start: {load}",
        ]


def this_machine() -> Machine:
    return Machine(
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        processor=processor(),
        cores=os.cpu_count() or 1,
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        python=platform.python_version(),
        java=java(),
        packages={name: version(name) for name in PACKAGES},
        commit=output("git", "describe", "--always", "--dirty", "--exclude=*"),
        load=os.getloadavg(),
    )


class Elsewhere:
    """How many cores the other processes of the machine had, on average, since this was made."""

    def __init__(self) -> None:
        self._ours = Spent()
        self._began = time.monotonic(), cpu_seconds_of_all(), self._ours.seconds()

    def cores(self) -> float:
        wall, everybody, ours = self._began
        used = (cpu_seconds_of_all() - everybody) - (self._ours.seconds() - ours)
        return max(0.0, used / max(time.monotonic() - wall, 1e-9))


def cpu_seconds_of_all() -> float:
    """User, nice, system and interrupt time of all processes; a virtual machine's stolen time is others' too."""
    described = Path("/proc/stat")
    fields = [int(field) for field in described.read_text().split("\n", 1)[0].split()[1:9]] if described.exists() else [0] * 8
    idle, waiting = fields[3:5]
    return (sum(fields) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def processor() -> str:
    described = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", described.read_text()) if described.exists() else None
    return found[1].strip() if found else platform.machine()


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = re.search(r'version "([^"]+)"', output(f"{home}/bin/java" if home else "java", "-version"))
    return found[1] if found else "unknown"


def output(*command: str) -> str:
    """What a command prints, on either stream; `unknown` where it is not there."""
    try:
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def resident_bytes() -> tuple[int, int]:
    """The memory this process has now and the most it ever had, from `/proc`; zeros where there is none."""
    status = Path("/proc/self/status")
    text = status.read_text() if status.exists() else ""
    found = [re.search(rf"{name}:\s+(\d+) kB", text) for name in ("VmRSS", "VmHWM")]
    now, most = (int(match[1]) * 1024 if match else 0 for match in found)
    return now, most
