"""Exploration: how trees grow, in training and at inference."""

from bough.explore.asking import Number, Words
from bough.explore.chains import Chains
from bough.explore.correct import Astray, Blame, Correct
from bough.explore.demonstration import Demonstration
from bough.explore.dream import Aside, Ask, Dream
from bough.explore.entropy_forks import EntropyForks
from bough.explore.ep_tree import Surprisal
from bough.explore.forks import Forks
from bough.explore.full_tree import Levels
from bough.explore.guided import Guided
from bough.explore.latr import Lookahead
from bough.explore.quality import Advised, Asked, Early, Proper, Quality
from bough.explore.segments import Segments
from bough.explore.slate import Slate

__all__ = [
    "Advised",
    "Aside",
    "Ask",
    "Asked",
    "Astray",
    "Blame",
    "Chains",
    "Correct",
    "Demonstration",
    "Dream",
    "Early",
    "EntropyForks",
    "Forks",
    "Guided",
    "Levels",
    "Lookahead",
    "Number",
    "Proper",
    "Quality",
    "Segments",
    "Slate",
    "Surprisal",
    "Words",
]
