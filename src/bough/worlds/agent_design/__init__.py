"""Designs of agents: a workflow and components, edited step by step and evaluated on a benchmark."""

from bough.worlds.agent_design.env import AgentDesign, TableBenchmark

__all__ = ["AgentDesign", "TableBenchmark"]
