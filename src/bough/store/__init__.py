"""The store: files of a run, written so that a kill or a full disk keeps earlier data intact."""

from bough.store.atomic import StoreError, digest, write_json
from bough.store.checkpoint import Checkpoint, Checkpoints, Latest
from bough.store.copies import Copies
from bough.store.fingerprint import fingerprint
from bough.store.lock import owned
from bough.store.manifest import describe, versions
from bough.store.message_log import Conversation, read_conversations
from bough.store.metrics import Metrics, read_metrics
from bough.store.partial_trees import PartialTrees
from bough.store.prometheus import Endpoint
from bough.store.run_status import RunStatus, run_status
from bough.store.rundir import RunDirectory, check_output
from bough.store.step_lines import StepLines
from bough.store.tasks import digest_tasks, read_tasks, write_tasks
from bough.store.trees import read_trees, stored_rewarded, stored_trees, tree_files, write_trees

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Conversation",
    "Copies",
    "Endpoint",
    "Latest",
    "Metrics",
    "PartialTrees",
    "RunDirectory",
    "RunStatus",
    "StepLines",
    "StoreError",
    "check_output",
    "describe",
    "digest",
    "digest_tasks",
    "fingerprint",
    "owned",
    "read_conversations",
    "read_metrics",
    "read_tasks",
    "read_trees",
    "run_status",
    "stored_rewarded",
    "stored_trees",
    "tree_files",
    "versions",
    "write_json",
    "write_tasks",
    "write_trees",
]
