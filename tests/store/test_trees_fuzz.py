"""Generated files of trees: damage is refused, and so are columns and texts that another program wrote wrongly."""

import json
from pathlib import Path

import numpy as np
from tests.damage import altered, damaged, refusal
from tests.fuzz import inputs
from tests.store.test_trees import some_trees

from bough.store import StoreError, digest, read_trees, write_trees
from bough.store.trees import _parts, _with_checksum


def rewritten(rng: np.random.Generator, words: bytes, raw: bytes, path: Path) -> None:
    """Write a pair with other texts or columns, and with the right checksums."""
    header, data = _parts(raw)
    about = header.pop("__metadata__")
    if rng.random() < 0.5:
        rows = [altered(rng, json.loads(line)) for line in words.splitlines()]
        path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        names = [*header]
        for _ in range(rng.integers(1, 3)):
            name = names[rng.integers(len(names))]
            if rng.random() < 0.3:
                header.pop(name, None)
            elif name in header:
                begin, end = header[name]["data_offsets"]
                part = np.frombuffer(data[begin:end], np.uint8).copy()
                part[rng.integers(0, max(len(part), 1), 4) % max(len(part), 1)] = (
                    rng.integers(0, 256, 4) if len(part) else 0
                )
                data = data[:begin] + part.tobytes() + data[end:]
    about["jsonl_blake2b"] = digest(path.with_suffix(".jsonl"))
    header["__metadata__"] = about
    path.write_bytes(_with_checksum(header, data) + data)


def test_trees_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "step_000001.safetensors"
    write_trees(path, some_trees(1))
    raw, words = path.read_bytes(), path.with_suffix(".jsonl").read_bytes()
    for number, rng in inputs("trees"):
        path.write_bytes(raw)
        path.with_suffix(".jsonl").write_bytes(words)
        kind = number % 3
        if kind == 0:
            path.write_bytes(damaged(rng, raw))
        elif kind == 1:
            path.with_suffix(".jsonl").write_bytes(damaged(rng, words))
        else:
            rewritten(rng, words, raw, path)
        same = path.read_bytes() == raw and path.with_suffix(".jsonl").read_bytes() == words
        message = refusal(lambda: read_trees(path), StoreError, number)
        assert not (message and same), number
        assert "step_000001" in message or same or kind == 2, f"input {number} was damaged and is read"
