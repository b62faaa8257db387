"""Tree rollouts: an agent acts in an environment, and a builder stores the nodes."""

from bough.rollout.agent import Agent, Critic, Limits, QuestionTooLong, RoleModel
from bough.rollout.attempt import Attempt
from bough.rollout.budget import Budget, BudgetExceeded, Usage
from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.deadlines import DeadlineExceeded, Deadlines, Wait
from bough.rollout.path_writer import PathWriter, PolicyFormat
from bough.rollout.replay_path import replay_path
from bough.rollout.rollout import Rollout
from bough.rollout.runner import Evaluates, Explorer, RolloutRunner, Rollouts, TreeStore, paths_of
from bough.rollout.seats import SeatAgent, SeatContext

__all__ = [
    "Agent",
    "Attempt",
    "Budget",
    "BudgetExceeded",
    "Critic",
    "Cursor",
    "DeadlineExceeded",
    "Deadlines",
    "Evaluates",
    "Explorer",
    "Limits",
    "NodeDraft",
    "PathWriter",
    "PendingAction",
    "PolicyFormat",
    "RoleModel",
    "QuestionTooLong",
    "Rollout",
    "RolloutRunner",
    "Rollouts",
    "SeatAgent",
    "SeatContext",
    "TreeBuilder",
    "TreeStore",
    "Usage",
    "Wait",
    "paths_of",
    "replay_path",
]
