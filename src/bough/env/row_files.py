"""Files of rows: JSON lines, CSV and Parquet, each row as a line of JSON."""

import csv
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from bough.usercode.json_file import parse_json
from bough.usercode.text_file import read_lines, read_text
from bough.version import install

CSV, JSON, PARQUET = ".csv", ".json", ".parquet"

SUFFIXES = (".jsonl", JSON, CSV, PARQUET)
"""Suffixes of files of rows; any other file has JSON lines too."""

FORMATS = "a file of JSON lines, CSV (.csv) or Parquet (.parquet)"


def read_row_file(file: Path) -> Iterator[tuple[str, str]]:
    """The rows of a file as lines of JSON, each after its place, "FILE, line 3"; empty lines are skipped.

    The first line of a CSV file has the names of the columns, and its values are texts. A file named .json may have
    a list.

    Raises:
        OSError: when the file cannot be read.
        ValueError: when a row cannot be read, or is one that JSON cannot write; names it.
        ImportError: for a Parquet file without the extra `parquet`.
    """
    if file.suffix.lower() == CSV:
        return _csv_rows(file)
    if file.suffix.lower() == JSON:
        return _json_rows(file)
    return _parquet_rows(file) if file.suffix.lower() == PARQUET else read_lines(file)


def json_line(row: Mapping[str, Any], where: str) -> str:
    """A row as a line of JSON.

    Raises:
        ValueError: when JSON cannot write it; names its place.
    """
    try:
        text = json.dumps(dict(row), ensure_ascii=False)
        text.encode()  # half of a surrogate pair is no text
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{where}: got {row!r:.80}; need a mapping that JSON can write ({error})") from error


def _json_rows(file: Path) -> Iterator[tuple[str, str]]:
    text = read_text(file)
    if not text.lstrip().startswith("["):
        yield from read_lines(file)
        return
    try:
        rows = cast("list[object]", parse_json(text))
    except ValueError as error:
        raise ValueError(f"{file}: got {error}; need a list of objects, or JSON lines") from error
    for number, row in enumerate(rows, 1):
        where = f"{file}, row {number}"
        if not isinstance(row, Mapping):
            raise ValueError(f"{where}: got {row!r:.80}; need an object")
        yield where, json_line(cast("Mapping[str, Any]", row), where)


def _csv_rows(file: Path) -> Iterator[tuple[str, str]]:
    where = str(file)
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            names = next(reader, list[str]())
            if not names or len({*names}) < len(names):
                raise ValueError(f"{file}: got the columns {names!r:.200}; need different names in the first line")
            for fields in reader:
                where = f"{file}, line {reader.line_num}"
                if fields and len(fields) != len(names):
                    raise ValueError(f"{where}: got {len(fields)} fields; need {len(names)}, one for each column")
                if fields:
                    yield where, json_line(dict(zip(names, fields, strict=True)), where)
    except csv.Error as error:
        raise ValueError(f"{where}: got no CSV after it ({error}); need fields with commas between them") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: got no UTF-8 ({error.reason}); need text in UTF-8") from error


def _parquet_rows(file: Path) -> Iterator[tuple[str, str]]:
    if find_spec("pyarrow") is None:
        raise ImportError(f"got {file} without the package pyarrow; need it: {install('parquet')}, or a CSV file")
    parquet = cast("Any", import_module("pyarrow.parquet"))
    try:
        with file.open("rb") as stream:
            table = parquet.read_table(stream)
    except ValueError as error:  # pyarrow's ArrowInvalid
        raise ValueError(f"{file}: got no Parquet ({error}); need a file in that format") from error
    for number, row in enumerate(table.to_pylist(), 1):
        where = f"{file}, row {number}"
        yield where, json_line(row, where)
