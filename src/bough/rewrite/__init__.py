"""Rewriters of paths: demonstrations that are made from trees and conversations, in the policy's own format."""

from bough.rewrite.parallel_paths import ParallelPaths
from bough.rewrite.predict_observations import PredictObservations
from bough.rewrite.refined import Refined
from bough.rewrite.revise import Revise, RevisedPath
from bough.rewrite.rewrite import PathRewriter
from bough.rewrite.search_traces import SearchTraces

__all__ = [
    "ParallelPaths",
    "PathRewriter",
    "PredictObservations",
    "Refined",
    "Revise",
    "RevisedPath",
    "SearchTraces",
]
