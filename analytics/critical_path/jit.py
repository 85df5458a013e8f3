"""Compiles the kernels of this package, and keeps their disk cache honest.

Numba decides whether a cached kernel is fresh by the file the kernel is in. Our kernels call kernels of other
files, which are compiled into them: after an upgrade that changes only the callee, the caller's cache would
go on running the old code. So every kernel here is stamped with the text of the whole package.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def _package_stamp() -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_STAMP = _package_stamp()


def kernel(function: Function) -> Function:
    """Compile ``function`` for one core, without the GIL and without fast-math, cached on disk."""
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    # Private, and checked by test_critical_path_jit: numba has no public way to name a source stamp.
    compiled._cache._cache_file._source_stamp = _STAMP
    return cast(Function, compiled)
