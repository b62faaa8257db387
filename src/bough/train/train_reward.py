"""Trains a reward model on the stored trees of runs and searches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bough.critics import RewardModel
from bough.critics.reward_model.calibration import Calibration
from bough.policy import Pretrained, Tiny
from bough.store import RunDirectory, stored_trees
from bough.train.stored_settings import load_run
from bough.tree import Tree, seat_view


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardTraining:
    """The result of `train_reward`.

    Attributes:
        folder: The folder of the reward model.
        trees: Number of trees.
        report: The calibration report on held-out tasks.
        tokenizer_known: Whether a run was named, so that uses of the model are checked for its tokenizer.
    """

    folder: Path
    trees: int
    report: Calibration
    tokenizer_known: bool

    def __str__(self) -> str:
        unchecked = "" if self.tokenizer_known else "\ntokenizer: not checked; --run RUN names the run of the policy"
        return f"trees: {self.trees:,}\n{self.report}{unchecked}\nreward model: {self.folder}"


def train_reward(
    targets: Sequence[Path | str],
    settings: RewardModel | None = None,
    *,
    out: Path | str,
    run: Path | str | None = None,
    seat: str = "",
    device: str = "auto",
) -> RewardTraining:
    """Train a reward model on stored trees, and write it with its calibration report to a folder.

        train_reward(["runs/a"], RewardModel(labels="soft"), out="prm")
        train_reward(["found"], RewardModel(labels="pairs", estimate="score"), out="plv", run="runs/a")

    Args:
        targets: Run directories, folders of searches (`bough search --out`), folders or files of trees; all of one
            tokenizer.
        settings: The settings; None for the defaults.
        out: The folder of the reward model, new or of an earlier one.
        run: The run of the policy that sampled the trees, for its tokenizer; None for the first target that is a run.
        seat: The seat whose turns are scored, in trees with several.
        device: "auto", "cpu", "cuda", ...

    Raises:
        StoreError: when a target has no trees, or `run` is no run.
        ValueError: when the trees have no labels to learn from, or a seat must be named.
        OSError: when `out` holds something else, or the folder of `settings.path` is missing.
    """
    # Imported here, because these import torch.
    from bough.critics.reward_model.folder import Decode, check_vacant
    from bough.critics.reward_model.train import train_on
    from bough.policy.placement import pick_device

    chosen, folder = settings or RewardModel(), Path(out)
    if not targets:
        raise ValueError("train_reward: got no targets; need run directories, or folders or files of trees")
    check_vacant(folder)
    trees = [_of_seat(tree, seat) for target in targets for tree in stored_trees(Path(target))]
    found = [tree for tree in trees if tree is not None]
    directory = _run(run, targets)
    decode: Decode | None = None
    vocab_tokens = 0
    if directory is not None:
        with directory.in_its_folder() as there:
            policy = load_run(there).world.policy
            renderer = policy.renderer(there.policy) if isinstance(policy, Tiny | Pretrained) else None
        if renderer is not None:
            decode, vocab_tokens = renderer.text, renderer.vocab_tokens
    model = train_on(found, chosen, decode=decode, vocab_tokens=vocab_tokens, device=pick_device(device))
    model = replace(model, name=str(folder))
    model.save(folder, trees=len(found), targets=[str(target) for target in targets])
    assert model.report is not None
    return RewardTraining(folder=folder, trees=len(found), report=model.report, tokenizer_known=decode is not None)


def _run(run: Path | str | None, targets: Sequence[Path | str]) -> RunDirectory | None:
    """The run whose tokenizer wrote the trees; None where none is known.

    Raises:
        StoreError: when `run` is no run.
    """
    if run is not None:
        return RunDirectory.open(Path(run))
    runs = (RunDirectory(path=Path(target)) for target in targets)
    return next((each for each in runs if each.config.is_file() and each.manifest.is_file()), None)


def _of_seat(tree: Tree, seat: str) -> Tree | None:
    """The tree of a seat; None where it does not act.

    Raises:
        ValueError: when the tree has several seats and none is named.
    """
    if tree.seats and not seat:
        names = [each.name for each in tree.seats]
        raise ValueError(f"train_reward: got trees of the seats {names}; need the name of one: --seat {names[0]}")
    return seat_view(tree, seat)
