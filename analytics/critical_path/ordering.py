"""Sorting for kernels: a merge sort that profits from what is already in order, and a counting sort."""

import numpy as np

from analytics.critical_path.jit import kernel
from analytics.model.trace import Int32, Int64


@kernel
def is_ascending(keys: Int64, begin: int, end: int) -> bool:
    """Whether ``keys[begin:end]`` never goes down."""
    for i in range(begin + 1, end):  # noqa: SIM110 - a kernel has no generators
        if keys[i] < keys[i - 1]:
            return False
    return True


@kernel
def _merge(keys: Int64, source: Int64, target: Int64, low: int, middle: int, high: int) -> None:
    left, right = low, middle
    for k in range(low, high):
        if left < middle and (right >= high or keys[source[left]] <= keys[source[right]]):
            target[k] = source[left]
            left += 1
        else:
            target[k] = source[right]
            right += 1


@kernel
def ascending_order(keys: Int64) -> Int64:
    """The stable permutation that sorts ``keys``: natural merge sort, linear when there are few runs."""
    count = len(keys)
    source = np.arange(count)
    target = np.empty(count, np.int64)
    bounds = np.empty(count + 1, np.int64)
    bounds[0] = 0
    runs = 0
    for i in range(1, count + 1):
        if i == count or keys[i] < keys[i - 1]:
            runs += 1
            bounds[runs] = i
    while runs > 1:
        merged = 0
        for r in range(0, runs, 2):
            middle, high = bounds[min(r + 1, runs)], bounds[min(r + 2, runs)]
            _merge(keys, source, target, bounds[r], middle, high)
            merged += 1
            bounds[merged] = high
        runs = merged
        source, target = target, source
    return source


@kernel
def counting_order(keys: Int32, bins: int, order: Int32, pointer: Int32) -> Int32:
    """Sort ``order`` stably by ``keys[order]``; ``pointer[k]:pointer[k+1]`` is where key k ends up."""
    pointer[:] = 0
    for m in order:
        pointer[keys[m] + 1] += 1
    for k in range(bins):
        pointer[k + 1] += pointer[k]
    cursor = pointer[:bins].copy()
    result = np.empty_like(order)
    for m in order:
        result[cursor[keys[m]]] = m
        cursor[keys[m]] += 1
    return result
