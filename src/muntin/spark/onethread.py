"""Linear algebra on one thread, while the driver assembles.

In: nothing. Out: a context. Convention: NumPy's products of matrices are short here, and the threads that a BLAS shares them with go on
spinning for a tenth of a second after each, on cores that Spark needs. On executors PySpark sees to it (`OMP_NUM_THREADS`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """
    >>> from threadpoolctl import threadpool_info
    >>> with one_thread():
    ...     {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    {1}
    """
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    """What is loaded; a BLAS is, once there was a product."""
    np.ones((1, 1)) @ np.ones((1, 1))
    return ThreadpoolController()
