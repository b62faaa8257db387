"""Text-to-SQL: an agent queries a SQLite database, then answers a question with a query."""

from bough.worlds.sql.env import Sql
from bough.worlds.sql.folders import BirdFolder, SpiderFolder
from bough.worlds.sql.generated import GeneratedQuestions

__all__ = ["BirdFolder", "GeneratedQuestions", "SpiderFolder", "Sql"]
