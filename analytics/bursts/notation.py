"""Inputs of a burst model as people write them: ``app1=0.05,app2=0.05``."""

from __future__ import annotations


def read_rates(text: str) -> dict[str, float]:
    """Rates by application, data units per unit of time.

    Raises
    ------
    ValueError
        If one is there twice, or is no finite number of at least 0.
    """
    rates: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        if name.strip() in rates:
            raise ValueError(f"{name.strip()!r} is there twice")
        rates[name.strip()] = read_number(text, number)
    return rates


def read_number(text: str, number: str) -> float:
    """The number behind the = of ``text``, finite and at least 0.

    Raises
    ------
    ValueError
        With the whole text.
    """
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError(f"{text!r} has no number of at least 0 after its =")
    return value
