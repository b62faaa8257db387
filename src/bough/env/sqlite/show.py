"""Texts of an episode: results of queries for the model, and SQL in the model's text."""

import re

from bough.env.sqlite.query import QueryResult, Value
from bough.usercode.origin import shorten

FENCE = re.compile(r"```(?:sql|sqlite)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
QUERY = re.compile(r"^[ \t]*((?:select|with|values)\b.*)", re.DOTALL | re.IGNORECASE | re.MULTILINE)


def show_result(result: QueryResult, *, rows: int, cell_characters: int, characters: int) -> str:
    """A result as text: the names of the columns, then one row a line, or the error.

    Args:
        result: The result.
        rows: Maximum number of rows; a last line has the number of further ones.
        cell_characters: Longer values are cut.
        characters: A longer text is cut.
    """
    if result.error:
        return shorten(f"error: {result.message}", characters)
    lines = [" | ".join(_cell(each, cell_characters) for each in row) for row in result.rows[:rows]]
    if left := len(result.rows) - len(lines):
        lines.append(f"({left}{' or' if result.more else ''} more rows)")
    if not lines:
        lines.append("(no rows)")
    header = " | ".join(_cell(each, cell_characters) for each in result.columns)
    text = "\n".join([header, *lines])
    return shorten(text.encode(errors="replace").decode(), characters)


def find_sql(text: str) -> str:
    """The query in a text: the last fenced block, else all from the first line that begins like a query; else ""."""
    if fenced := FENCE.findall(text):
        return str(fenced[-1]).strip()
    found = QUERY.search(text)
    return found[1].strip() if found else ""


def _cell(value: Value, characters: int) -> str:
    if value is None:
        return "NULL"
    text = f"x'{value[:characters].hex()}'" if isinstance(value, bytes) else str(value)
    return shorten(re.sub(r"[\x00-\x1f\x7f\u2028\u2029]+", " ", text), characters)
