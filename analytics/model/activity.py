"""What a worker can be doing: the activity types of the SnailTrail paper (section 4.1)."""

from enum import IntEnum


class ActivityType(IntEnum):
    """Type of an activity. Codes are those of SnailTrail's portable log records; 0 is never used."""

    INPUT = 1
    BUFFER = 2
    SCHEDULING = 3
    PROCESSING = 4
    BARRIER = 5
    SERIALIZATION = 6
    DESERIALIZATION = 7
    FAULT_TOLERANCE = 8
    CONTROL_MESSAGE = 9
    DATA_MESSAGE = 10
    UNKNOWN = 11
    WAITING = 12

    @property
    def label(self) -> str:
        """The name used in files, in the API and in URLs, such as ``data_message``."""
        return self.name.lower()

    @property
    def is_message(self) -> bool:
        """Whether the activity goes from one worker to another."""
        return self in _MESSAGES


_MESSAGES = frozenset((9, 10))
"""Whole numbers: comparing members takes as long as all else about a record."""

TYPE_COUNT = 13
"""Length of an array indexed by activity code (code 0 stays empty)."""

BY_LABEL = {kind.label: kind for kind in ActivityType}
