"""GRPO on accounts in a database."""

from bough.methods.grpo import grpo
from bough.train import Run
from bough.worlds.ledger.preset import ledger


def grpo_ledger() -> Run:
    """GRPO (arXiv 2402.03300) on the world of accounts, from random weights: trains in minutes on a CPU core.

    Tuned: a learning rate at which the warm-up survives, and as many steps as success grows.
    """
    return grpo(ledger()).replace(name="grpo_ledger")
