"""What assembly holds and has done, looked up in its stores.

In: an `Assembly`, or those of a stream. Out: its stores, and the combines they performed. Convention: benchmarks look inside here and
nowhere else.
"""

from __future__ import annotations

from muntin.windows.assemblies import Assemblies
from muntin.windows.assembly import Assembly
from muntin.windows.store import SliceStore


def stores_of(assembly: Assembly | Assemblies) -> list[SliceStore]:
    if isinstance(assembly, Assemblies):
        return [store for one in assembly.of.values() if isinstance(one, Assembly) for store in stores_of(one)]
    return [store for home in assembly.households.values() for store in home.stores]


def performed(assembly: Assembly | Assemblies) -> int:
    """Combines of two partial states."""
    return sum(store.work.combines for store in stores_of(assembly))
