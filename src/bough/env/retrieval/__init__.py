"""Corpora, indices and questions for environments with a search engine."""

from bough.env.retrieval.document import Document
from bough.env.retrieval.draw import draw_tasks
from bough.env.retrieval.files import CorpusFiles
from bough.env.retrieval.index import Bm25s, Fts5, Index, IndexSettings
from bough.env.retrieval.knowledge import KnowledgeGraph
from bough.env.retrieval.question import Evidence, Question, read_question
from bough.env.retrieval.score import Metric, final_answer, normalise, score, tags_paired, token_f1
from bough.env.retrieval.source import Collection, QuestionSource, open_collection

__all__ = [
    "Bm25s",
    "Collection",
    "CorpusFiles",
    "Document",
    "Evidence",
    "Fts5",
    "Index",
    "IndexSettings",
    "KnowledgeGraph",
    "Metric",
    "Question",
    "QuestionSource",
    "draw_tasks",
    "final_answer",
    "normalise",
    "open_collection",
    "read_question",
    "score",
    "tags_paired",
    "token_f1",
]
