"""Objectives: losses on columns of trained tokens, in pure torch, without trees, texts or models."""

from bough.needs import Need
from bough.objective.aepo import Aepo
from bough.objective.bradley_terry import BradleyTerry, process_preference
from bough.objective.chord import Chord
from bough.objective.cispo import Cispo
from bough.objective.clipping_bias import ClippingBias
from bough.objective.corrections import Mis, Reject, Tis
from bough.objective.dpo import Dpo, agent_q_dpo, mcts_dpo, rstar, step_dpo, tp_llama
from bough.objective.entropy import Entropy
from bough.objective.epo import Epo
from bough.objective.gspo import gspo
from bough.objective.imitation import Imitation
from bough.objective.inpo import Inpo
from bough.objective.inputs import LossInputs
from bough.objective.kl import Kl
from bough.objective.margin_dpo import MarginDpo
from bough.objective.mixture_kl import MixtureKl
from bough.objective.normalizer import Normalizer
from bough.objective.objective import Loss, Objective, compute_loss, regularises
from bough.objective.off_policy_clip import OffPolicyClip
from bough.objective.opmd import Opmd
from bough.objective.orpo import Orpo
from bough.objective.pairs import Pairs
from bough.objective.ppo import PpoClip, loop_clip
from bough.objective.rec import Rec
from bough.objective.reinforce import Reinforce
from bough.objective.sapo import Sapo
from bough.objective.seeupo import SeeUpo
from bough.objective.selfplay import SelfPlay
from bough.objective.sft_mix import SftMix
from bough.objective.simpo import SimPo
from bough.objective.sppo import Sppo
from bough.objective.step_apo import StepApo
from bough.objective.sum import Sum, add
from bough.objective.take import take
from bough.objective.token_q import TokenQ
from bough.objective.topr import Topr
from bough.objective.tpo import Tpo
from bough.objective.value import ValueClip
from bough.objective.wdpo import WDpo

__all__ = [
    "Aepo",
    "BradleyTerry",
    "Chord",
    "Cispo",
    "ClippingBias",
    "Dpo",
    "Entropy",
    "Epo",
    "Imitation",
    "Inpo",
    "Kl",
    "Loss",
    "LossInputs",
    "MarginDpo",
    "Mis",
    "Need",
    "MixtureKl",
    "Normalizer",
    "Objective",
    "OffPolicyClip",
    "Opmd",
    "Orpo",
    "Pairs",
    "PpoClip",
    "Rec",
    "Reinforce",
    "Reject",
    "Sapo",
    "SeeUpo",
    "SelfPlay",
    "SftMix",
    "SimPo",
    "Sppo",
    "StepApo",
    "Sum",
    "Tis",
    "TokenQ",
    "Topr",
    "Tpo",
    "ValueClip",
    "WDpo",
    "add",
    "agent_q_dpo",
    "compute_loss",
    "gspo",
    "loop_clip",
    "mcts_dpo",
    "process_preference",
    "regularises",
    "rstar",
    "step_dpo",
    "take",
    "tp_llama",
]
