"""What assembly holds and has done, looked up in its stores.

In: an `Assembly`. Out: its stores, and the combines they performed. Convention: benchmarks look inside here and nowhere else.
"""

from __future__ import annotations

from muntin.windows.assembly import Assembly
from muntin.windows.store import SliceStore


def stores_of(assembly: Assembly) -> list[SliceStore]:
    return [store for home in assembly.households.values() for store in home.stores]


def performed(assembly: Assembly) -> int:
    """Combines of two partial states."""
    return sum(store.work.combines for store in stores_of(assembly))
