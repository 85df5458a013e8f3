"""What can be wrong with an upload: each with the HTTP status and the code the API answers with."""


class UploadError(Exception):
    """The upload cannot be taken or stored; the message is a sentence for people."""

    status = 400
    code = "bad_upload"


class TooLargeUploadError(UploadError):
    """The file has more bytes than may be uploaded."""

    status = 413
    code = "too_large"


class DiskFullError(UploadError):
    """There is no room on the disk."""

    status = 507
    code = "disk_full"


class UnknownFormatError(UploadError):
    """The format is not one of ours, or nobody can tell which it is."""

    code = "unknown_format"


class IncompleteUploadError(UploadError):
    """The connection ended before the file did."""

    code = "incomplete"


class NotNowError(UploadError):
    """The upload is not in a state in which this can be done."""

    status = 409
    code = "conflict"


class BusyError(UploadError):
    """Too much is under way; try again later."""

    status = 429
    code = "too_many_uploads"
