import json
from pathlib import Path

import pytest

from bough.usercode.json_file import MOST_DEPTH, json_text, parse_json, read_object


def test_values_come_back() -> None:
    value = {"a": [1, -2.5, None, True, "é🙂\u2028"], "b": {"c": 10**40}}
    assert parse_json(json.dumps(value)) == value
    assert parse_json("[" * MOST_DEPTH + "]" * MOST_DEPTH)
    assert parse_json(r'"\ud83d\ude42 \\ud83d"') == r"🙂 \ud83d"


def test_a_number_that_is_not_finite_is_written_as_null() -> None:
    value = {"a": [float("nan"), 1.5], "b": {"c": -float("inf")}}
    assert json_text(value) == '{"a": [null, 1.5], "b": {"c": null}}'
    assert json_text({"a": "NaN"}) == '{"a": "NaN"}'
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="Circular"):
        json_text(loop)


def test_a_file_that_is_no_object_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    for text, reason in (("[1]", "got a list"), ("{", "got no JSON"), ("[" * 9999, "more than 100 levels")):
        file.write_text(text)
        with pytest.raises(ValueError, match=rf"config\.json: {reason}|config\.json: got JSON of {reason}"):
            read_object(file)
