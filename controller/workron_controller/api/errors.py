"""Stand-in until the real one is merged."""

from workron.core import errors


class ApiError(errors.WorkronError):
    """The API server did not do what was asked."""


class UnreachableError(ApiError):
    """It does not answer."""


class TooManyError(ApiError):
    """It asks for patience."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


PASSING = (UnreachableError, TooManyError)
