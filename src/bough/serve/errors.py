"""Errors of the API: a status, and OpenAI's error object."""

from collections.abc import Mapping

from bough.usercode.origin import shorten

TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 413: "request_too_large"}

MOST_CHARACTERS = 900
"""Characters of a message; a longer one has a name or a text of the request, and is cut."""


class ApiError(Exception):
    """A request that gets an error as its response.

    Attributes:
        status: The HTTP status.
        message: What the request has, what it needs, and what to change.
        code: OpenAI's code, such as "context_length_exceeded"; None without one.
        param: The wrong field; None when no field is wrong.
    """

    def __init__(self, status: int, message: str, *, code: str | None = None, param: str | None = None) -> None:
        message = shorten(message, MOST_CHARACTERS)
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param

    @property
    def body(self) -> Mapping[str, object]:
        """The response's JSON."""
        kind = TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}
