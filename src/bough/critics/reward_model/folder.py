"""The folder of a trained reward model.

reward_model.json    settings, tokenizer, scale and shift of the probability, number of trees and tasks
calibration.json     the calibration report
config.json, model.safetensors    the transformer, in the format of transformers
head.safetensors     the scalar head
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bough.critics.reward_model.calibration import Calibration
from bough.critics.reward_model.settings import RewardModel
from bough.policy.folder import similar_folder
from bough.policy.placement import pick_device
from bough.tree import Floats, Ints, sigmoid
from bough.usercode.json_file import json_text, read_object

if TYPE_CHECKING:
    from bough.critics.reward_model.network import RewardNetwork

ABOUT, REPORT = "reward_model.json", "calibration.json"
FORMAT = "bough-reward-model-1"
MOST_IDS = 4096
"""Most token ids whose texts identify a tokenizer."""

Decode: TypeAlias = Callable[[Sequence[int]], str]
"""The text of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedRewardModel:
    """A trained reward model.

    Attributes:
        settings: Its settings.
        network: The weights.
        tokenizer: The fingerprint of the policy's tokenizer; "" when it is unknown.
        scale: The probability is sigmoid(scale * score + shift): 1 and 0, and for a ranker those of `platt`.
        shift: See above.
        report: The calibration report; None for a model without one.
        name: The folder, for messages.
    """

    settings: RewardModel
    network: "RewardNetwork"
    tokenizer: str = ""
    scale: float = 1.0
    shift: float = 0.0
    report: Calibration | None = None
    name: str = "reward model"

    def scores(self, texts: Sequence[Ints]) -> Floats:
        """[n] float64: the scores of n steps."""
        return self.network.scores(texts) if texts else np.zeros(0)

    def probabilities(self, texts: Sequence[Ints]) -> Floats:
        """[n] float64 in (0, 1): the scores as probabilities of success."""
        return sigmoid(self.scale * self.scores(texts) + self.shift)

    def check_tokenizer(self, decode: Decode) -> None:
        """Check that a policy has the tokenizer of the trees on which the model was trained.

        Raises:
            ValueError: when it has another.
        """
        if self.tokenizer and fingerprint(decode, self.network.vocab_tokens) != self.tokenizer:
            raise ValueError(
                f"{self.name}: got a policy with another tokenizer than that of the trees on which this reward model "
                "was trained; need one of this policy: bough train-reward RUN --out FOLDER, with a run of the policy"
            )

    def save(self, folder: Path, **about: object) -> None:
        """Write the folder.

        Raises:
            FileExistsError: when the folder holds something else.
        """
        check_vacant(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.network.save(folder)
        numbers: dict[str, object] = {"scale": self.scale, "shift": self.shift, **about}
        content = {"format": FORMAT, "settings": asdict(self.settings), "tokenizer": self.tokenizer, **numbers}
        if self.report is not None:
            (folder / REPORT).write_text(json_text(self.report.record(), indent=2) + "\n", encoding="utf-8")
        (folder / ABOUT).write_text(json_text(content, indent=2) + "\n", encoding="utf-8")


def check_vacant(folder: Path) -> None:
    """Check that a reward model can be written to a folder.

    Raises:
        FileExistsError: when it holds something else.
    """
    if folder.exists() and not (folder / ABOUT).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{folder}: got a folder that holds something else than a reward model; choose another --out"
        )


def load_reward_model(folder: str | Path, device: str = "cpu") -> TrainedRewardModel:
    """The reward model in a folder, loaded once for all its users.

    Args:
        folder: As `bough train-reward` wrote it.
        device: "auto", "cpu", "cuda", ...

    Raises:
        OSError: when there is no such folder, or it has no reward model.
        ValueError: when a file has another format.
    """
    place = reward_model_folder(folder)
    return _load(place.absolute(), (place / ABOUT).stat().st_mtime_ns, device)


def reward_model_folder(folder: str | Path) -> Path:
    """The folder of a reward model.

    Raises:
        OSError: when there is no such folder, or it has no reward model.
    """
    place = Path(folder).expanduser()
    if not (place / ABOUT).is_file():
        found = "no reward model" if place.is_dir() else "no such folder"
        hint = "" if place.is_dir() else similar_folder(str(folder))
        out = "FOLDER" if place.is_dir() else folder
        raise FileNotFoundError(
            f"reward model: got {found} at {str(place.absolute())!r}; need one that `bough train-reward RUN "
            f"--out {out}` writes{hint}"
        )
    return place


@lru_cache(maxsize=8)
def _load(folder: Path, written: int, device: str) -> TrainedRewardModel:
    from bough.critics.reward_model.network import load_network

    del written  # A folder that was written again is loaded again.
    about = read_object(folder / ABOUT, "the file of a reward model")
    if about.get("format") != FORMAT:
        raise ValueError(f"{folder / ABOUT}: got format {about.get('format')!r}; need {FORMAT!r}: train it again")
    try:
        settings, tokenizer = RewardModel(**about["settings"]), str(about["tokenizer"])
        scale, shift = float(about["scale"]), float(about["shift"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{folder / ABOUT}: got other fields ({error}); need those of {FORMAT!r}: train it again"
        ) from error
    return TrainedRewardModel(
        settings=settings,
        network=load_network(folder, settings, pick_device(device)),
        tokenizer=tokenizer,
        scale=scale,
        shift=shift,
        name=str(folder),
    )


@lru_cache(maxsize=64)
def fingerprint(decode: Decode, vocab_tokens: int) -> str:
    """A checksum of the texts of at most `MOST_IDS` tokens, spread over a vocabulary."""
    ids = range(0, vocab_tokens, max(1, vocab_tokens // MOST_IDS))
    return hashlib.blake2b("\0".join(_text(decode, each) for each in ids).encode(), digest_size=16).hexdigest()


def _text(decode: Decode, token: int) -> str:
    """The text of a token; "" for an id that the tokenizer lacks: models have more rows than tokens."""
    try:
        return decode([token])
    except (IndexError, KeyError, ValueError, OverflowError, TypeError):
        return ""
