"""A pantry in a SQLite database: look up what is needed and what is there, and buy the rest."""
