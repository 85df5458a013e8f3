"""Why something was refused. Each becomes one status and code in the API and one line on a page."""

from __future__ import annotations


class RefusedError(Exception):
    """The attempt changed nothing; the message says why in a sentence for the person who tried."""

    status = 409
    code = "conflict"


class NoSuchProposalError(RefusedError):
    """There is none, or it is not for this person to see."""

    status = 404
    code = "not_found"


class NotAllowedError(RefusedError):
    """The person's role, or who they are, does not allow it."""

    status = 403
    code = "permission_denied"


class ReasonRequiredError(RefusedError):
    """A reason must be given."""

    status = 400
    code = "reason_required"


class StaleViewError(RefusedError):
    """The person saw an earlier state of it."""

    code = "changed_meanwhile"


class DecidedError(RefusedError):
    """Nothing is left to decide: somebody else, or time, was first."""

    code = "already_decided"


class ExpiredError(DecidedError):
    """Its time is over, though nobody had written that down yet."""

    code = "expired"


class AlreadyVotedError(RefusedError):
    """This person has voted; another must agree too."""

    code = "already_voted"


class FrozenError(RefusedError):
    """Nothing may be changed now."""

    code = "frozen"


class BusyError(RefusedError):
    """Another change of the job is on its way."""

    code = "busy"


class ObserveOnlyError(RefusedError):
    """Weir only observes this job."""

    code = "observe_only"


class OwnedError(RefusedError):
    """Another controller scales this job."""

    code = "owned"


class InvalidProposalError(RefusedError):
    """What is proposed makes no sense for this job."""

    status = 400
    code = "invalid"


class OutdatedError(RefusedError):
    """What it rests on is not so any more, or never was."""

    code = "outdated"
