import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bough.store import StoreError
from bough.store.answers import Answers


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """A disk that fills up: a write beyond this size is short, and the next one fails."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_short_write_leaves_all_other_answers_readable(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    answers = Answers(path)
    with files_of_at_most(20_000):
        for number in range(6):
            answers.put(f"k{number}", {"text": "x" * 3000})
        with pytest.raises(StoreError, match=r"disk full while writing .*answers\.jsonl"):
            answers.put("k6", {"text": "x" * 3000})
    answers.put("k7", {"text": "later", "score": float("nan")})
    for stored in (answers, Answers(path)):
        assert len(stored) == 7
        assert stored.get("k5") == {"key": "k5", "text": "x" * 3000}
        assert stored.get("k6") is None
        assert stored.get("k7") == {"key": "k7", "text": "later", "score": None}


def test_a_line_that_is_cut_off_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    Answers(path).put("a", {"text": "1"})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"key": "b", "te')
    answers = Answers(path)
    assert answers.get("b") is None
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["{", "[]", '{"text": "a"}', '{"key": 1}', "[" * 50_000, '{"key": "\ufffd'])
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(f'{{"key": "a"}}\n{line}\n')
    with pytest.raises(StoreError, match=r"answers\.jsonl, line 2: got .*need an answer .*remove the line"):
        Answers(path)
