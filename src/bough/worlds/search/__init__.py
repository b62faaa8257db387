"""Question answering with a search engine: search a corpus, read documents, answer."""

from bough.worlds.search.env import SearchQa
from bough.worlds.search.files import CorpusFiles
from bough.worlds.search.index import Bm25s, Fts5
from bough.worlds.search.knowledge import KnowledgeGraph
from bough.worlds.search.passages import Passages
from bough.worlds.search.routed_search import RoutedSearch
from bough.worlds.search.self_search import SelfSearch

__all__ = ["Bm25s", "CorpusFiles", "Fts5", "KnowledgeGraph", "Passages", "RoutedSearch", "SearchQa", "SelfSearch"]
