"""Trees on disk: all arrays in one safetensors file, all texts in one JSONL file beside it.

Both are open formats, and numpy alone can read them. The safetensors file `step_000012.safetensors` begins with the
length of a JSON header, 8 bytes little-endian; the header has the dtype, shape and offsets of each column in the rest:

    raw = open("step_000012.safetensors", "rb").read()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    dtypes = {"I8": "<i1", "I32": "<i4", "I64": "<i8", "F32": "<f4", "F64": "<f8", "BOOL": "?"}
    columns = {
        name: np.frombuffer(raw[start:][slice(*at["data_offsets"])], dtypes[at["dtype"]])
        for name, at in header.items() if name != "__metadata__"
    }

The K trees of the file are concatenated, N nodes and T tokens in all:

    first_node [K + 1]      tree k has the nodes first_node[k] : first_node[k + 1]
    span [N + 1]            node i has the tokens span[i] : span[i + 1]
    parent [N]              counted from the first node of the tree; -1 at its root
    token, logprob, entropy, allowed [T], and all other columns of `Tree` [N]: kind, outcome, success, valid, ...
    channel/NAME [N]        rewards of channel NAME at each node; nan on trees without it       (rewarded, credited)
    check/NAME [N]          check NAME, measured and not trained on; nan where it has no value  (rewarded, credited)
    first_entry [K + 1]     tree k has the advantages path_advantage[first_entry[k] : first_entry[k + 1]]  (credited)
    path_advantage [E]      as in `Credited`                                                    (credited)
    excluded [N]            1 at the leaves that are excluded from the loss, 0 elsewhere        (credited)

Line k of `step_000012.jsonl` is one object:

    {"task": {"id", "seed", "data"}, "counts": {...}, "replayed": false, "info": [N objects], "channels": [NAME, ...]}

A tree with checks has "checks": [NAME, ...]. A tree with columns of appraisers has "appraisals": by column and node
[value, verdict, votes, questions, tokens]. A tree with seats has "seats": name, payoffs and successes by node. A tree
that was sampled under a grammar has "allowed_sets": each set's bytes, compressed by zlib, in base64. The task has
"start" if it has one, the counts are those of `RolloutCounts`; numbers that are not finite are null. The header's
`__metadata__` contains the format, the stage of the trees ("Tree", "Rewarded", "Credited"), and two BLAKE2b checksums:
of the JSONL file, and of the file itself, that is of the header without this checksum, as JSON with sorted keys and no
blanks, followed by the columns. A file of an earlier format has no checksum of itself and is refused.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from bough.store.atomic import StoreError, digest, stored_object, write_bytes
from bough.tree import Credited, Rewarded, Tree, cut_tree, join_column, join_trees, rows_of, tree_record
from bough.usercode.json_file import json_text

FORMAT = "bough-trees-6"
CHECKSUM = "blake2b"
"""The key of the file's own checksum."""
Columns: TypeAlias = dict[str, NDArray[Any]]
Stage = TypeVar("Stage", Tree, Rewarded, Credited)


def write_trees(path: Path, trees: Sequence[Tree] | Sequence[Rewarded] | Sequence[Credited]) -> None:
    """Write trees of one stage to `path`, which ends in `.safetensors`, and to the `.jsonl` beside it.

    Each file is written completely or not at all, and the safetensors file has the checksums of both. So a killed
    process, or a damaged disk, leaves a pair that `read_trees` either reads or refuses.

    Raises:
        ValueError: when the trees are of different stages, or `path` ends in something else.
        TypeError: when a task or a node's info holds a value that JSON cannot write.
        StoreError: when the disk is full.
    """
    from safetensors.numpy import save

    if path.suffix != ".safetensors":
        raise ValueError(f"write_trees: got {path}; need a name that ends in .safetensors")
    stages = {type(each).__name__ for each in trees} or {"Tree"}
    if len(stages) > 1:
        raise ValueError(f"write_trees: got trees of stages {sorted(stages)}; need one stage a file")
    words = path.with_suffix(".jsonl")
    write_bytes(words, "".join(json_text(_words(each)) + "\n" for each in trees).encode())
    about = {"format": FORMAT, "stage": stages.pop(), "jsonl_blake2b": digest(words)}
    # safetensors writes `__metadata__` in a random order.
    header, data = _parts(save(_columns(trees), about))
    write_bytes(path, _with_checksum(header, data) + data)


@overload
def read_trees(path: Path) -> list[Tree | Rewarded | Credited]: ...
@overload
def read_trees(path: Path, stage: type[Stage]) -> list[Stage]: ...
def read_trees(path: Path, stage: type[Tree] | type[Rewarded] | type[Credited] | None = None) -> Sequence[object]:
    """The trees written by `write_trees` to `path`, of the same stage and equal bit for bit.

    Args:
        path: The `.safetensors` file.
        stage: The required stage; None for any.

    Raises:
        StoreError: when a file is missing, cut off, damaged, of another format, or belongs to another pair, or when
            the trees are of another stage than `stage`.
    """
    words = path.with_suffix(".jsonl")
    columns, about = _read(path)
    if not words.is_file() or digest(words) != about["jsonl_blake2b"]:
        raise StoreError(
            f"{words}: it is missing, cut off, damaged, or was not written together with {path.name}; need the pair "
            "from one write. Write the trees again, or copy both files from where they are whole"
        )
    lines = words.read_bytes().split(b"\n")[:-1]
    if stage and lines and about["stage"] != stage.__name__:
        raise StoreError(f"{path}: got trees of stage {about['stage']}; need {stage.__name__}")
    found: list[Tree | Rewarded | Credited] = []
    for at, line in enumerate(lines):
        try:
            found.append(_staged(about["stage"], columns, stored_object(line), at))
        # A pair that another program wrote may lack anything.
        except Exception as error:
            raise StoreError(
                f"{words}, line {at + 1}: got columns and texts that are no tree ({type(error).__name__}: {error}); "
                "need a pair as `write_trees` wrote it"
            ) from error
    return found


def tree_files(place: Path) -> list[Path]:
    """The files of trees at a path, by name: one file, those of a folder, or those of the directory of a run or search.

    Raises:
        StoreError: when there are none.
    """
    place = place.absolute()
    folder = place / "trees" if (place / "trees").is_dir() else place
    found = sorted(folder.glob("*.safetensors")) if folder.is_dir() else [folder]
    if not found or not folder.exists():
        raise StoreError(
            f"{place}: got no files of trees; set checkpointing.trees_every in the run, search with --out, or name "
            "other trees"
        )
    return found


def stored_trees(place: Path) -> list[Tree]:
    """The trees of `tree_files`, of any stage, without rewards and credit.

    Raises:
        StoreError: when there are none.
    """
    stages = [each for file in tree_files(place) for each in read_trees(file)]
    scored = [each.rewarded if isinstance(each, Credited) else each for each in stages]
    return [each if isinstance(each, Tree) else each.tree for each in scored]


def stored_rewarded(place: Path) -> list[Rewarded]:
    """The rewarded trees of `tree_files`, without credit.

    Raises:
        StoreError: when there are none, or a file's trees have no rewards.
    """
    found: list[Rewarded] = []
    for file in tree_files(place):
        for each in read_trees(file):
            if isinstance(each, Tree):
                raise StoreError(f"{file}: got trees without rewards; need those of a run's training steps")
            found.append(each.rewarded if isinstance(each, Credited) else each)
    return found


def _parts(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file, and its columns."""
    start = 8 + int.from_bytes(raw[:8], "little")
    return json.loads(raw[8:start]), raw[start:]


def _with_checksum(header: Mapping[str, Any], data: bytes) -> bytes:
    """The beginning of a file of these columns: the header with sorted keys and the checksum."""
    about = {name: value for name, value in header["__metadata__"].items() if name != CHECKSUM}
    checksum = hashlib.blake2b(_json({**header, "__metadata__": about}))
    checksum.update(data)
    text = _json({**header, "__metadata__": {**about, CHECKSUM: checksum.hexdigest()}})
    # Columns start at a multiple of 8 bytes, as safetensors requires.
    text = text.ljust(-(-len(text) // 8) * 8)
    return len(text).to_bytes(8, "little") + text


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _tree(each: Tree | Rewarded | Credited) -> Tree:
    return each if isinstance(each, Tree) else each.tree


def _rewarded(each: Tree | Rewarded | Credited) -> Rewarded | None:
    return each.rewarded if isinstance(each, Credited) else each if isinstance(each, Rewarded) else None


def _words(each: Tree | Rewarded | Credited) -> dict[str, object]:
    tree, rewarded = _tree(each), _rewarded(each)
    checks = {"checks": list(rewarded.checks)} if rewarded and rewarded.checks else {}
    return tree_record(tree) | {"channels": list(rewarded.channels) if rewarded else [], **checks}


def _columns(stages: Sequence[Tree | Rewarded | Credited]) -> Columns:
    columns: Columns = join_trees([_tree(each) for each in stages])
    rewarded = [each for each in map(_rewarded, stages) if each]
    for kind in ("channel", "check"):
        paid = [each.channels if kind == "channel" else each.checks for each in rewarded]
        for name in dict.fromkeys(name for own in paid for name in own):
            none = (np.full(each.tree.nodes, np.nan) for each in rewarded)
            values = [own.get(name, nan) for own, nan in zip(paid, none, strict=True)]
            columns[f"{kind}/{name}"] = join_column(np.dtype(np.float64), values)
    if credited := [each for each in stages if isinstance(each, Credited)]:
        advantages = [each.path_advantage for each in credited]
        columns["first_entry"] = np.cumsum([0, *map(len, advantages)]).astype(np.int64)
        columns["path_advantage"] = join_column(np.dtype(np.float64), advantages)
        excluded = [np.isin(np.arange(each.tree.nodes), each.excluded_leaves) for each in credited]
        columns["excluded"] = join_column(np.dtype(np.int8), excluded)
    return columns


def _read(path: Path) -> tuple[Columns, dict[str, str]]:
    """The columns and the metadata of a file that is as it was written."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise StoreError(f"{path}: there is no such file of trees") from None
    try:
        header, data = _parts(raw)
        about: dict[str, str] = header.get("__metadata__", {})
        begin = raw[: len(raw) - len(data)]
        whole = CHECKSUM not in about or begin == _with_checksum(header, data)
    except (ValueError, TypeError, AttributeError, RecursionError):
        about, whole = {}, False
    if not whole:
        raise StoreError(
            f"{path}: got a file that is cut off, damaged, or no safetensors; need one as `write_trees` wrote it. "
            "Write the trees again, or copy both files from where they are whole"
        )
    if about.get("format") != FORMAT or CHECKSUM not in about:
        raise StoreError(
            f"{path}: got format {about.get('format')!r}; need {FORMAT!r}, a file of trees with a checksum"
        )
    try:
        return load(raw), about
    except SafetensorError as error:
        raise StoreError(
            f"{path}: got columns that are no safetensors ({error}); need one as `write_trees` wrote it"
        ) from error


def _staged(stage: str, columns: Columns, line: Mapping[str, Any], at: int) -> Tree | Rewarded | Credited:
    tree = cut_tree(columns, at, line)
    if stage == "Tree":
        return tree
    rows = rows_of(columns, "channel", at)
    channels, checks = (
        {name: columns[f"{kind}/{name}"][rows] for name in cast("list[str]", line.get(f"{kind}s", []))}
        for kind in ("channel", "check")
    )
    rewarded = Rewarded(tree=tree, channels=channels, checks=checks)
    if stage == "Rewarded":
        return rewarded
    return Credited(
        rewarded=rewarded,
        path_advantage=columns["path_advantage"][slice(*columns["first_entry"][at : at + 2].tolist())],
        excluded_leaves=np.flatnonzero(columns["excluded"][rows_of(columns, "excluded", at)]),
    )
