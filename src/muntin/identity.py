"""What users' functions are told apart by, in this process and in those that a copy of them is sent to.

In: functions. Out: a text, the same for the same functions. Convention: it is made where a function first comes up and is sent along with
it: Python compares functions by being the same object, which a copy in another process never is.
"""

from __future__ import annotations

from collections.abc import Hashable
from uuid import uuid4

_KNOWN: dict[Hashable, str] = {None: ""}


def identity_of(*functions: Hashable) -> str:
    """
    >>> identity_of(len, None) == identity_of(len, None), identity_of(len) == identity_of(max)
    (True, False)
    """
    return " ".join(_KNOWN.setdefault(function, uuid4().hex) for function in functions)
