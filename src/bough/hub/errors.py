"""Errors of a hub as messages: what is wrong, and what to do."""

import errno

from bough.hub.repo import HubRepo

LOG_IN = "log in: hf auth login, or HF_TOKEN=TOKEN"


class HubError(OSError):
    """A model or a data set of a hub that can't be had.

    Attributes:
        unreachable: Whether the hub did not answer, so that a copy in the cache may do.
    """

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


def explained(error: BaseException, repo: HubRepo, endpoint: str, cached: str) -> HubError:
    """The error of the hub's client with a message for the user.

    Args:
        error: The error.
        repo: The model or data set.
        endpoint: The hub's address.
        cached: What the cache has of it: "which is not in the cache, FOLDER".
    """
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled

    # It stands for the reason that the hub did not answer.
    while isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    status = getattr(getattr(error, "response", None), "status_code", None)
    kind = " --repo-type dataset" if repo.kind == "dataset" else ""
    elsewhere = f"or do on another machine: hf download {repo.name}{kind}, and copy its cache"
    unreachable = status is None or status == 429 or status >= 500
    if isinstance(error, HFValidationError):
        unreachable, reason = False, f"which is none ({_line(error)}); need owner/name, or owner/name@REVISION"
    elif isinstance(error, OfflineModeIsEnabled):
        reason = f"{cached}, and HF_HUB_OFFLINE is set; unset it, {elsewhere}"
    elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
        unreachable, reason = (
            False,
            "whose download filled the disk; free space, or set HF_HOME to another folder",
        )
    elif isinstance(error, OSError) and error.filename is not None:
        # An error of the disk, and not of the network, names a file.
        unreachable, reason = (
            False,
            f"which the cache can't keep ({_line(error)}); make the folder writable, or set HF_HOME to another one",
        )
    elif status is None:
        what = f"{type(error).__name__}: {_line(error)}"
        reason = f"{cached}, and {endpoint} can't be reached ({what}); connect and repeat the command, {elsewhere}"
    else:
        reason = _refusal(error, status, repo, endpoint, cached)
    return HubError(f"{repo.title}, {reason}", unreachable=unreachable)


def _refusal(error: BaseException, status: int, repo: HubRepo, endpoint: str, cached: str) -> str:
    """Why the hub refuses, and what to do."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    page = f"{endpoint}/{'datasets/' if repo.kind == 'dataset' else ''}{repo.name}"
    if isinstance(error, GatedRepoError):
        how = "wait until this account has access" if status == 403 else LOG_IN
        return f"which is gated ({status}); accept its conditions at {page}, and {how}"
    if isinstance(error, RevisionNotFoundError):
        return f"without this revision ({status}); need a branch, a tag or a commit, as {page}/commits/main lists them"
    if isinstance(error, RepositoryNotFoundError):
        return (
            f"{cached}, and which {endpoint} does not have ({status}); correct the name, write ./{repo.name} for "
            f"a path, or for a private {repo.noun} {LOG_IN}"
        )
    if status in (401, 403):
        return f"to which {endpoint} refuses access ({status}); {LOG_IN}, with a valid token"
    return f"{cached}, and {endpoint} answered {status}; repeat the command later, which keeps what is downloaded"


def _line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).strip().splitlines() or [""])[0][:200]
