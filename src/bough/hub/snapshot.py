"""The files of a model or a data set: those of the hub's cache, or a download into it."""

import glob
import os
import shutil
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, cast

from bough.hub.errors import HubError, explained
from bough.hub.listing import Listing, is_inside, read_listing, write_listing
from bough.hub.progress import progress, say, size_text
from bough.hub.repo import COMMIT, HubRepo
from bough.nearest import close, suggest
from bough.units import number_of

Select: TypeAlias = Callable[[Listing, str], Sequence[str]]
"""From the files of a commit, and the commit: the names of the files that are needed.

Raises a ValueError where there is none of use.
"""

TIMEOUT_S = 10.0
"""Longest wait for the list of files."""


def snapshot(repo: HubRepo, select: Select, is_whole: Callable[[Path], bool] | None = None) -> Path:
    """The folder with files of a model or data set; its name is the commit. Missing files are downloaded.

    What is whole in the cache is taken without a connection, so a branch stays at the commit that it had there.

    Args:
        repo: The model or data set.
        select: Chooses the files.
        is_whole: Whether a copy that another program downloaded has all files, where that can be seen. For None the
            hub is asked once, and a copy is taken as it is when the hub does not answer.

    Raises:
        HubError: when files are not in the cache and can't be downloaded; the message has the cause and what to do.
    """
    cached = _cached(repo)
    known = None if cached is None else read_listing(repo, cached.name)
    if cached is not None and known is not None and not _missing(cached, _selected(repo, select, known, cached.name)):
        return cached
    if cached is not None and known is None and is_whole is not None and is_whole(cached):
        return cached
    try:
        needed = list[str]() if cached is None or known is None else _selected(repo, select, known, cached.name)
        commit, listing = _listed(repo, needed)
    except HubError as error:
        if cached is None or known is not None or is_whole is not None or not error.unreachable:
            raise
        return _as_it_is(repo, cached, select)
    names = _selected(repo, select, listing, commit)
    missing = _missing(cached if cached is not None and cached.name == commit else None, names)
    return cached if cached is not None and not missing else _downloaded(repo, listing, names, missing)


def endpoint() -> str:
    """The address of the hub: the environment variable HF_ENDPOINT, by default https://huggingface.co."""
    from huggingface_hub import constants

    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or constants.ENDPOINT


def _cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _cached(repo: HubRepo) -> Path | None:
    """The folder of the revision in the cache, which may lack files."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    with _errors(repo):
        try:
            return Path(_hub().snapshot_download(**_revision(repo), local_files_only=True))
        except LocalEntryNotFoundError as error:
            partial = getattr(error, "snapshot_path", None)
            return Path(partial) if partial else None


def _listed(repo: HubRepo, names: Sequence[str]) -> tuple[str, Listing]:
    """The commit of a revision and its files, as the hub lists them; `names` are those known to be needed."""
    with _errors(repo, names):
        info = _hub().HfApi(endpoint=endpoint()).repo_info(**_revision(repo), files_metadata=True, timeout=TIMEOUT_S)
        commit, listing = str(info.sha), {str(each.rfilename): int(each.size or 0) for each in info.siblings or ()}
    # Names of files of this machine are made of them.
    if not COMMIT.fullmatch(commit):
        raise HubError(f"{repo.title}: got the commit {commit!r:.80} from the hub; need 40 hexadecimal digits")
    if outside := [name for name in listing if not is_inside(name)]:
        raise HubError(f"{repo.title}: got the file {outside[0]!r:.80} from the hub; need names inside of its folder")
    write_listing(repo, commit, listing)
    return commit, listing


def _selected(repo: HubRepo, select: Select, listing: Listing, commit: str) -> Sequence[str]:
    try:
        return select(listing, commit)
    except ValueError as error:
        raise HubError(f"{repo.title}, {error}") from error


def _missing(cached: Path | None, names: Sequence[str]) -> list[str]:
    return [name for name in names if cached is None or not (cached / name).is_file()]


def _as_it_is(repo: HubRepo, cached: Path, select: Select) -> Path:
    """A copy that another program downloaded, which can't be compared with the hub's list."""
    files = {file.relative_to(cached).as_posix(): file.stat().st_size for file in cached.rglob("*") if file.is_file()}
    _selected(repo, select, files, cached.name)
    say(f"{repo.name}: taken from the cache as it is, since the hub does not answer")
    return cached


def _downloaded(repo: HubRepo, listing: Listing, names: Sequence[str], missing: Sequence[str]) -> Path:
    """Download files; whole files stay when it breaks off."""
    total, started = sum(listing[name] for name in missing), time.monotonic()
    _check_disk(repo, total)
    say(
        f"{repo.name}: downloading {number_of(len(missing), 'file')}, {size_text(total)}, from {endpoint()} to "
        f"{_cache()}, which has {size_text(_free())} free"
    )
    folder = _cache() / f"{repo.kind}s--{repo.name.replace('/', '--')}"
    patterns = [glob.escape(name) for name in names]
    with _errors(repo, names), _without_bars(), progress(folder, repo.name, total):
        found = Path(_hub().snapshot_download(**_revision(repo), allow_patterns=patterns, endpoint=endpoint()))
    if left := _missing(found, names):
        raise HubError(
            f"{repo.title}, whose download broke off before {left[0]}; need all {len(names)} files: the same command "
            "goes on with the rest"
        )
    say(f"{repo.name}: revision {found.name}, downloaded in {time.monotonic() - started:,.0f} s")
    return found


def _check_disk(repo: HubRepo, total: int) -> None:
    if total > (free := _free()):
        raise HubError(
            f"{repo.title}, of which {size_text(total)} are to be downloaded; need room for them, and {_cache()} has "
            f"{size_text(free)} free: free space there, or set HF_HOME to a folder of another disk"
        )


def _free() -> int:
    """The free bytes of the cache's disk."""
    cache = _cache().absolute()
    return shutil.disk_usage(next(each for each in (cache, *cache.parents) if each.exists())).free


def _what_is_cached(repo: HubRepo, names: Sequence[str]) -> str:
    """What the cache has of a model or data set, for messages."""
    cached = _cached(repo)
    if cached is None:
        near = close(repo.name, _cached_names(repo))
        return f"which is not in the cache, {_cache()}" + (f" ({suggest(near)})" if near else "")
    missing = _missing(cached, names)
    lack = f"lacks {len(missing)} of {len(names)} files, such as {missing[0]}" if missing else "is not whole"
    return f"whose copy in the cache, {cached}, {lack}"


def _cached_names(repo: HubRepo) -> list[str]:
    """The names of the models, or data sets, that the cache has."""
    folders = sorted(_cache().glob(f"{repo.kind}s--*--*"))
    return [each.name.removeprefix(f"{repo.kind}s--").replace("--", "/", 1) for each in folders]


def _revision(repo: HubRepo) -> dict[str, Any]:
    return {"repo_id": repo.name, "repo_type": repo.kind, "revision": repo.revision}


def _hub() -> Any:
    # Its functions have no complete types.
    import huggingface_hub

    return cast("Any", huggingface_hub)


@contextmanager
def _errors(repo: HubRepo, names: Sequence[str] | None = None) -> Generator[None]:
    """Raises errors of the hub's client as a `HubError`; `names` are the files that are needed."""
    try:
        yield
    # The client's HTTP library has errors of its own, which depend on its version.
    except Exception as error:
        cached = "" if names is None else _what_is_cached(repo, names)
        raise explained(error, repo, endpoint(), cached) from error


@contextmanager
def _without_bars() -> Generator[None]:
    """Turn off the bars of the hub's client, one a file: Bough shows one for all."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    shown = not are_progress_bars_disabled()
    if shown:
        disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            enable_progress_bars()
