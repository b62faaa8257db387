"""The routes of trees, episodes and searches under `/api`."""

from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.routing import Route

from bough.viewer.branches import Place, RunBranches
from bough.viewer.evaluations import evaluations
from bough.viewer.stored_trees import TreeName
from bough.viewer.text_search import search_texts
from bough.viewer.tree_answers import Answer, TreeAnswers
