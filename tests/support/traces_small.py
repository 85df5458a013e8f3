"""Words for writing small traces by hand."""

PROCESSING, CONTROL, DATA, UNKNOWN, WAITING = 4, 9, 10, 11, 12
Row = tuple[int, int, int, int, int, int]


def work(worker: int, start: int, end: int, kind: int = PROCESSING, operator: int = -1) -> Row:
    """A worker does something."""
    return (kind, worker, -1, operator, start, end)


def wait(worker: int, start: int, end: int) -> Row:
    """A worker says that it waits."""
    return work(worker, start, end, WAITING)


def message(src: int, sent: int, dst: int, received: int, kind: int = DATA) -> Row:
    """A worker sends, another receives."""
    return (kind, src, dst, -1, sent, received)
