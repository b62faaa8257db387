"""TP-LLaMA on Sokoban."""

from bough.methods.tp_llama import tp_llama
from bough.train import Run
from bough.worlds.sokoban.preset import sokoban


def tp_llama_sokoban() -> Run:
    """TP-LLaMA (arXiv 2406.07115) on Sokoban: three rounds of a search of 64 rooms."""
    return tp_llama(sokoban()).replace(name="tp_llama_sokoban")
