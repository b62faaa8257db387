import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.store import StoreError, digest, read_trees, write_trees
from bough.store.trees import _parts, _with_checksum
from bough.tree import (
    DTYPES,
    Credited,
    Kind,
    Outcome,
    Rewarded,
    RolloutCounts,
    Seat,
    Source,
    Task,
    Tree,
    no_token_sets,
    spread_nodes,
)

WORDS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
INFO = st.dictionaries(st.text(), WORDS, max_size=3)
CHANNELS = st.dictionaries(st.text(), st.just(None), max_size=3).map(list)


def random_parents(rng: np.random.Generator, nodes: int) -> list[int]:
    """Parents in depth-first pre-order: each node hangs from the walk that leads to the node before it."""
    parents, walk = [-1], [0]
    for node in range(1, nodes):
        del walk[rng.integers(1, len(walk) + 1) :]
        parents.append(walk[-1])
        walk.append(node)
    return parents


def random_seat(rng: np.random.Generator, nodes: int, name: str) -> Seat:
    payoff = np.where(rng.random(nodes) < 0.5, rng.normal(size=nodes), 0.0)
    return Seat(name=name, payoff=payoff, success=rng.integers(-1, 2, nodes).astype(np.int8))


def random_tree(rng: np.random.Generator, nodes: int, name: str, info: list[dict[str, object]]) -> Tree:
    parent = np.array(random_parents(rng, nodes), dtype=np.int32)
    kind = np.array([Kind.PROMPT, *rng.integers(1, 4, nodes - 1)], dtype=np.int8)
    source = rng.integers(0, 4, nodes).astype(np.int8)
    lengths = rng.integers(0, 4, nodes)
    sampled = np.repeat((kind == Kind.ACTION) & (source == Source.SAMPLED), lengths)
    inner = np.isin(np.arange(nodes), parent)
    tokens = len(sampled)
    seats = ("white", "black") if rng.random() < 0.5 else ()
    # Every token below 2**20; the last byte tells the sets apart.
    sets = no_token_sets()
    if count := int(rng.integers(3)):
        sets = np.full((count, 2**17 + 1), 255, dtype=np.uint8)
        sets[:, -1] = np.arange(count)
    return Tree(
        task=Task(id=name, seed=int(rng.integers(1 << 40)), data={"size": nodes}),
        parent=parent,
        kind=kind,
        span=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        token=rng.integers(0, 1 << 20, tokens).astype(np.int32),
        logprob=np.where(sampled, -rng.random(tokens), np.nan).astype(np.float32),
        entropy=np.where(sampled & (rng.random(tokens) < 0.5), rng.random(tokens), np.nan).astype(np.float32),
        allowed=np.where(sampled, rng.integers(-1, len(sets), tokens), -1).astype(np.int32),
        allowed_sets=sets,
        outcome=np.where(inner, Outcome.OPEN, rng.integers(0, 5, nodes)).astype(np.int8),
        env_reward=rng.normal(size=nodes),
        state_key=rng.integers(-(1 << 62), 1 << 62, nodes),
        source=source,
        policy_version=rng.integers(-1, 9, nodes).astype(np.int32),
        success=rng.integers(-1, 2, nodes).astype(np.int8),
        valid=rng.integers(-1, 2, nodes).astype(np.int8),
        well_formed=rng.integers(-1, 2, nodes).astype(np.int8),
        cut_off=rng.integers(-1, 2, nodes).astype(np.int8),
        truncated_by=rng.integers(0, 12, nodes).astype(np.int8),
        chain=rng.integers(-1, 9, nodes).astype(np.int32),
        answer=rng.random(nodes) < 0.5,
        value=np.where(rng.random(nodes) < 0.5, rng.random(nodes), np.nan),
        rating=np.where(rng.random(nodes) < 0.5, rng.random(nodes), np.nan),
        visits=rng.integers(0, 9, nodes).astype(np.int32),
        seat=rng.integers(0, 2 if seats else 1, nodes).astype(np.int8),
        seats=tuple(random_seat(rng, nodes, each) for each in seats),
        counts=RolloutCounts(turns=int(rng.integers(9)), pruned_branches=None if rng.random() < 0.5 else 2),
        replayed=bool(rng.random() < 0.5),
        info=tuple(info[node % len(info)] if info else {} for node in range(nodes)),
    )


def random_credited(rng: np.random.Generator, tree: Tree, names: list[str]) -> Credited:
    tree = replace(tree, seats=(), seat=np.zeros_like(tree.seat))
    rewarded = Rewarded(tree=tree, channels={name: rng.normal(size=tree.nodes) for name in names})
    return spread_nodes(rewarded, rng.normal(size=tree.nodes))


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    return left.dtype == right.dtype and left.tobytes() == right.tobytes()


def some_trees(count: int = 3) -> list[Credited]:
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, 4 + i, f"task-{i}", [{"text": "go ↑"}]) for i in range(count)]
    return [random_credited(rng, tree, ["env", f"only-{i}"]) for i, tree in enumerate(trees)]


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(1, 9), max_size=4),
    info=st.lists(INFO, max_size=3),
    names=st.lists(CHANNELS, min_size=4, max_size=4),
    stage=st.sampled_from([Tree, Rewarded, Credited]),
)
def test_trees_come_back_bit_for_bit(tmp_path_factory, seed, sizes, info, names, stage) -> None:
    rng = np.random.default_rng(seed)
    credited = [
        random_credited(rng, random_tree(rng, size, f"task-{i}", info), names[i]) for i, size in enumerate(sizes)
    ]
    wrote = [{Tree: each.tree, Rewarded: each.rewarded, Credited: each}[stage] for each in credited]
    path = tmp_path_factory.mktemp("trees") / "step_000001.safetensors"
    write_trees(path, wrote)
    back = read_trees(path, stage)
    assert [type(each) for each in back] == [stage] * len(wrote)
    for was, now in zip(credited, back, strict=True):
        tree = now if stage is Tree else now.tree
        assert was.tree.equals(tree)
        assert all(same_bits(was.tree.columns()[name], tree.columns()[name]) for name in DTYPES)
        if stage is not Tree:
            channels = now.channels if stage is Rewarded else now.rewarded.channels
            assert list(channels) == list(was.rewarded.channels)
            assert all(same_bits(was.rewarded.channels[name], channels[name]) for name in channels)
        if stage is Credited:
            assert same_bits(was.positive, now.positive)
            assert same_bits(was.negative, now.negative)


def test_the_same_trees_are_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    credited = random_credited(rng, random_tree(rng, 4, "one", []), ["b", "a"])
    files = [tmp_path / str(count) / "step_000001.safetensors" for count in range(12)]
    for file in files:
        file.parent.mkdir()
        write_trees(file, [credited])
    assert len({file.read_bytes() for file in files}) == 1, "of 12 random orders of three keys two would differ"
    assert read_trees(files[0], Credited)[0].rewarded.channels.keys() == {"a", "b"}


def test_numpy_alone_reads_the_files_as_the_docstring_says(tmp_path: Path) -> None:
    trees = some_trees()
    path = tmp_path / "step_000012.safetensors"
    write_trees(path, trees)
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    dtypes = {"I8": "<i1", "I32": "<i4", "I64": "<i8", "F32": "<f4", "F64": "<f8", "BOOL": "?"}
    columns = {
        name: np.frombuffer(raw[start:][slice(*at["data_offsets"])], dtypes[at["dtype"]])
        for name, at in header.items()
        if name != "__metadata__"
    }
    lines = [json.loads(line) for line in (tmp_path / "step_000012.jsonl").open()]
    assert header["__metadata__"]["stage"] == "Credited"
    second = trees[1].tree
    first, last = columns["first_node"][1:3]
    assert np.array_equal(columns["parent"][first:last], second.parent)
    third_node = slice(*columns["span"][first + 3 : first + 5])
    assert np.array_equal(columns["token"][third_node], second.tokens_of(3))
    assert np.array_equal(columns["channel/only-1"][first:last], trees[1].rewarded.channels["only-1"])
    assert np.all(np.isnan(columns["channel/only-0"][first:last]))
    entries = slice(*columns["first_entry"][1:3])
    assert np.array_equal(columns["path_advantage"][entries], trees[1].path_advantage)
    assert np.flatnonzero(columns["excluded"][first:last]).tolist() == trees[1].excluded_leaves.tolist()
    assert lines[1]["task"]["id"] == "task-1"
    assert lines[1]["channels"] == ["env", "only-1"]
    assert lines[1]["info"][0] == {"text": "go ↑"}


@pytest.mark.parametrize("suffix", [".safetensors", ".jsonl"])
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "step_000001.safetensors"
    write_trees(path, some_trees())
    file = path.with_suffix(suffix)
    whole = file.read_bytes()
    for length in range(0, len(whole), 29):
        file.write_bytes(whole[:length])
        with pytest.raises(StoreError, match=f"step_000001.{suffix[1:]}.*cut off"):
            read_trees(path)


@pytest.mark.parametrize("suffix", [".safetensors", ".jsonl"])
def test_a_flipped_bit_anywhere_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "step_000001.safetensors"
    write_trees(path, some_trees())
    file = path.with_suffix(suffix)
    whole = file.read_bytes()
    places = [*range(min(len(whole), 64)), *range(64, len(whole), 41)]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        with pytest.raises(StoreError, match=f"step_000001.{suffix[1:]}: "):
            read_trees(path)
    file.write_bytes(whole + b"\0")
    with pytest.raises(StoreError, match=f"step_000001.{suffix[1:]}: .*damaged"):
        read_trees(path)
    file.write_bytes(whole)
    assert len(read_trees(path)) == 3


@pytest.mark.parametrize("raw", [b"", b"\0" * 8, b"\xff" * 16, b"\2\0\0\0\0\0\0\0[]", b"\2\0\0\0\0\0\0\0{}"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "step_000001.safetensors"
    write_trees(path, some_trees())
    path.write_bytes(raw)
    with pytest.raises(StoreError, match=r"step_000001.safetensors: got .*; need"):
        read_trees(path)


def test_numbers_that_are_not_finite_are_written_as_null(tmp_path: Path) -> None:
    path = tmp_path / "step_000001.safetensors"
    tree = random_tree(np.random.default_rng(0), 2, "a", [{"result": {"score": float("nan")}}, {}])
    write_trees(path, [tree])
    json.loads(path.with_suffix(".jsonl").read_text(), parse_constant=pytest.fail)
    assert read_trees(path, Tree)[0].info[0] == {"result": {"score": None}}


@pytest.mark.parametrize("line", ["{}", "[1]", "{", "[" * 50_000, '{"task": {"id": 1}, "info": [], "counts": {}}'])
def test_texts_of_no_tree_are_refused_with_their_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "step_000001.safetensors"
    write_trees(path, [random_tree(np.random.default_rng(0), 2, "a", [{}, {}])])
    words = path.with_suffix(".jsonl")
    words.write_text(f"{line}\n")
    raw = path.read_bytes()
    header, data = _parts(raw)
    header["__metadata__"]["jsonl_blake2b"] = digest(words)
    path.write_bytes(_with_checksum(header, data) + data)
    with pytest.raises(StoreError, match=r"jsonl, line 1: got columns and texts that are no tree"):
        read_trees(path)


def test_a_file_without_a_checksum_is_refused(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = tmp_path / "step_000001.safetensors"
    write_trees(path, some_trees())
    for version in ("bough-trees-5", "bough-trees-6"):
        save_file(load_file(path), path, {"format": version, "stage": "Credited"})
        with pytest.raises(
            StoreError, match=f"got format '{version}'; need 'bough-trees-6', a file of trees with a check"
        ):
            read_trees(path)


def test_files_of_two_writes_are_refused(tmp_path: Path) -> None:
    trees = some_trees()
    write_trees(tmp_path / "a.safetensors", trees)
    write_trees(tmp_path / "b.safetensors", trees[:2])
    (tmp_path / "b.jsonl").replace(tmp_path / "a.jsonl")
    with pytest.raises(StoreError, match=r"a\.jsonl.*not written together with a\.safetensors"):
        read_trees(tmp_path / "a.safetensors")
    with pytest.raises(StoreError, match=r"b\.jsonl.*missing"):
        read_trees(tmp_path / "b.safetensors")
    with pytest.raises(StoreError, match="no such file of trees"):
        read_trees(tmp_path / "c.safetensors")


def test_the_wrong_stage_and_mixed_stages_are_refused(tmp_path: Path) -> None:
    trees = some_trees(2)
    path = tmp_path / "step_000001.safetensors"
    write_trees(path, [each.tree for each in trees])
    with pytest.raises(StoreError, match="got trees of stage Tree; need Credited"):
        read_trees(path, Credited)
    with pytest.raises(ValueError, match="one stage a file"):
        write_trees(path, [trees[0], trees[1].tree])
    with pytest.raises(ValueError, match=r"ends in \.safetensors"):
        write_trees(tmp_path / "step_000001.bin", trees)


def test_another_safetensors_file_is_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(StoreError, match="a file of trees"):
        read_trees(tmp_path / "model.safetensors")


def test_writing_again_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "step_000001.safetensors"
    write_trees(path, some_trees(3))
    write_trees(path, some_trees(1))
    assert len(read_trees(path)) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["step_000001.jsonl", "step_000001.safetensors"]
