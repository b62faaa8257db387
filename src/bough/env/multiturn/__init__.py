"""BFCL's multi-turn episodes: the package's data, its API classes as values, and its ground truth."""

from bough.env.multiturn.apis import Apis, copy_apis, execute, hash_apis
from bough.env.multiturn.entries import CATEGORIES, Entry, entries
from bough.env.multiturn.functions import CLASSES, functions
from bough.env.multiturn.package import PROMPTS, module, package_hash
from bough.env.multiturn.solution import Solution, needed, passes, solution

__all__ = [
    "CATEGORIES",
    "CLASSES",
    "PROMPTS",
    "Apis",
    "Entry",
    "Solution",
    "copy_apis",
    "entries",
    "execute",
    "functions",
    "hash_apis",
    "module",
    "needed",
    "package_hash",
    "passes",
    "solution",
]
