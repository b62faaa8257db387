"""Models and data sets of a hub, by their ids: the cached copy, or a download with its size, progress and errors."""

from bough.hub.errors import HubError as HubError
from bough.hub.repo import HubRepo as HubRepo
from bough.hub.repo import hub_repo as hub_repo
from bough.hub.repo import may_be_path as may_be_path
from bough.hub.repo import repo_of as repo_of
from bough.hub.snapshot import snapshot as snapshot
from bough.hub.source import HubSource as HubSource
