"""Small traces with everything in them that is hard: ties, nesting, overlaps, waits, lives, moments."""

from __future__ import annotations

import numpy as np

DATA = 10


def random_rows(rng: np.random.Generator, workers: int, span: int, *, dirty: bool = False):
    """Rows for Records.of. Only a dirty trace has overlaps and messages received before they were sent."""
    rows = []
    for worker in range(workers):
        if dirty:
            for _ in range(rng.integers(0, 5)):
                a, b = sorted(rng.integers(0, span + 1, 2).tolist())
                rows.append((int(rng.choice([4, 5, 11, 12])), worker, -1, int(rng.integers(-1, 3)), a, b))
        else:
            rows += nested(rng, worker, 0, span, 2)
    for _ in range(rng.integers(0, 2 * workers + 1)):
        src, dst = (int(x) for x in rng.integers(0, workers, 2))
        if src == dst and rng.random() < 0.8:
            dst = (dst + 1) % workers
        sent, received = (int(x) for x in rng.integers(0, span + 1, 2))
        if rng.random() < 0.3:
            received = sent
        if received < sent and not (dirty and rng.random() < 0.2):
            sent, received = received, sent
        rows.append((int(rng.choice([9, 10])), src, dst, int(rng.integers(-1, 2)), sent, received))
    if workers > 1 and rng.random() < 0.05:  # two messages within one moment, there and back
        moment = int(rng.integers(0, span + 1))
        rows += [(DATA, 0, 1, -1, moment, moment), (DATA, 1, 0, -1, moment, moment)]
    return [rows[i] for i in rng.permutation(len(rows))]


def nested(rng: np.random.Generator, worker: int, low: int, high: int, depth: int):
    """Activities side by side, some of them with others strictly inside, some of no length."""
    rows = []
    at = low
    while at < high and rng.random() < 0.8:
        a = at + int(rng.integers(0, 3))
        b = a + int(rng.integers(0, 6))
        if b > high:
            break
        rows.append((int(rng.choice([3, 4, 4, 4, 11, 12])), worker, -1, int(rng.integers(-1, 3)), a, b))
        if depth and b - a > 2 and rng.random() < 0.4:
            rows += nested(rng, worker, a + 1, b - 1, depth - 1)
        at = b
    return rows


def random_lives(rng: np.random.Generator, workers: int, first: int, last: int) -> list[tuple[int, int]]:
    """Most workers live all the time, some come later or go earlier, of some nothing is reported."""
    lives = []
    for _ in range(workers):
        choice = rng.random()
        if choice < 0.7:
            lives.append((first, last))
        elif choice < 0.9:
            a, b = sorted(int(x) for x in rng.integers(first, last + 1, 2))
            lives.append((a, b))
        else:
            lives.append((0, -1))
    return lives
