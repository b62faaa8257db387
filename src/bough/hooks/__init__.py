"""Hooks: stateful helpers that run between reward and credit, and resume bit for bit."""

from bough.hooks.attention_reward import AttentionReward
from bough.hooks.contrastive import Contrastive
from bough.hooks.exit import ExIt
from bough.hooks.explors import ExploRs
from bough.hooks.failure_sampling import FailureSampling
from bough.hooks.fewest_calls import FewestCalls
from bough.hooks.hindsight import Hindsight
from bough.hooks.hook import BatchHook, HookRecipe, HookSetup, PolicyAccess
from bough.hooks.implicit_reward import ImplicitReward
from bough.hooks.length_history import LengthHistory
from bough.hooks.oni import Oni
from bough.hooks.pick_paths import PickPaths
from bough.hooks.run_hooks import SettingDriver, TaskRewriter, TaskSampler
from bough.hooks.search_noise import SearchNoise
from bough.hooks.snapshots import Snapshots
from bough.hooks.subgroup_votes import SubgroupVotes
from bough.hooks.success_replay import SuccessReplay
from bough.hooks.tracker import Tracker
from bough.hooks.value_resampling import ValueResampling
from bough.hooks.worst_cases import WorstCases

__all__ = [
    "AttentionReward",
    "BatchHook",
    "Contrastive",
    "ExIt",
    "ExploRs",
    "FailureSampling",
    "FewestCalls",
    "Hindsight",
    "HookRecipe",
    "HookSetup",
    "ImplicitReward",
    "LengthHistory",
    "Oni",
    "PickPaths",
    "PolicyAccess",
    "SearchNoise",
    "SettingDriver",
    "Snapshots",
    "SubgroupVotes",
    "SuccessReplay",
    "TaskRewriter",
    "TaskSampler",
    "Tracker",
    "ValueResampling",
    "WorstCases",
]
