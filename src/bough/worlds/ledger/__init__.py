"""Accounts in a SQLite database: look balances up, compare them, and move money."""
