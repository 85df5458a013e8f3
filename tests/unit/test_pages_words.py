"""Words of pages: how many changes are told, and which."""

from analytics.model.topology import MemoryUse
from frontend import words
from frontend.components import memory


def test_few_changes_are_told_in_their_order_and_of_many_the_largest() -> None:
    few = [("a", 1, 2), ("b", None, 9), ("c", 5, 4)]
    assert words.changes(few) == ["a 1 → 2", "b ? → 9", "c 5 → 4"]
    many = [(f"o{count}", 10, 10 + count) for count in range(1, 41)]
    assert words.changes(many) == [
        "o40 10 → 50", "o39 10 → 49", "o38 10 → 48", "o37 10 → 47", "o36 10 → 46", "35 more operators",
    ]  # fmt: skip
    assert len(words.changes(many[:6])) == 6
    assert words.changes([]) == []


def test_memory_is_told_where_it_is_known_and_warned_of_where_it_is_short() -> None:
    assert memory.told(None) == []
    assert memory.told(MemoryUse(0.031, 0.61)) == [
        " · memory: 3.1 % of the time in garbage collection, 61 % of the heap in use"
    ]
    (warned,) = memory.told(MemoryUse(0.5, None, 0.2))
    assert warned.className == "warn"
    assert "short of memory: 50 % of the time" in warned.children
