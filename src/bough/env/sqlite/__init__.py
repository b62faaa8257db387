"""Read-only queries of SQLite databases, with limits."""
