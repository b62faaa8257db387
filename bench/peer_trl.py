"""A side of bench/peers.py: TRL's GRPOTrainer.

It generates single completions itself, and chains and trees through its `rollout_func`. Of a tree it is given every
path, as it has no other form for one; what branches share is generated once all the same. What costs
time and does not change the loss is off: gradient checkpointing, and a second forward pass.
"""

import json
import tempfile
import time
from pathlib import Path

import torch
from datasets import Dataset
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from peer_generate import grow
from peer_line import Line, arguments
from peer_shapes import BETAS, CLIP, CLIP_NORM, LEARNING_RATE, SHAPES, Shape, reward

MOST_STEPS = 64
ROWS = 64
"""Rows of one forward pass."""


def rewards(completion_ids: list[list[int]], **_: object) -> list[float]:
    return [reward(completion) for completion in completion_ids]


class Turns(TrainerCallback):
    """Holds the trainer after every optimizer step until the next one is asked for. The first is not timed."""

    def __init__(self, line: Line) -> None:
        self._line, self._begin = line, 0.0

    def on_step_end(self, args, state, control, **kwargs):  # noqa: ARG002, D102
        seconds = time.perf_counter() - self._begin
        self._line.tell({"seconds": seconds} if state.global_step > 1 else {})
        if self._line.ask() is None:
            control.should_training_stop = True
        self._begin = time.perf_counter()


class Keep(TrainerCallback):
    """Writes the gradient of the first step, and ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):  # noqa: ARG002, D102
        slopes = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
        save_file(slopes, self._folder / "gradient.safetensors")

    def on_step_end(self, args, state, control, **kwargs):  # noqa: ARG002, D102
        control.should_training_stop = True


def settings(shape: Shape, folder: str, *, replays: bool) -> GRPOConfig:
    return GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=min(ROWS, shape.paths),
        gradient_accumulation_steps=max(1, shape.paths // ROWS),
        num_generations=shape.paths // shape.prompts,
        max_completion_length=shape.turns * (shape.action_tokens + shape.observation_tokens),
        temperature=1.0,
        top_k=0,
        beta=0.0,
        epsilon=CLIP,
        loss_type="dapo",
        scale_rewards="group",
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        adam_beta1=BETAS[0],
        adam_beta2=BETAS[1],
        max_grad_norm=0.0 if replays else CLIP_NORM,
        max_steps=MOST_STEPS,
        shuffle_dataset=False,
        save_strategy="no",
        logging_strategy="steps",
        logging_steps=1 if replays else MOST_STEPS,
        report_to=[],
        disable_tqdm=True,
    )


def trainer(folder: Path, shape: Shape, callback: TrainerCallback, out: str, replayed: Path | None) -> GRPOTrainer:
    """A trainer whose step k is on the prompts of round k, or on the paths of a file."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    # An end that the model cannot write, so that every completion has its full length.
    tokenizer.add_special_tokens({"eos_token": "<never>"})
    words = tokenizer.convert_ids_to_tokens
    prompts = [" ".join(words(row)) for step in range(MOST_STEPS) for row in shape.texts(step).prompts.tolist()]

    def played(_: list[str], trainer: GRPOTrainer) -> dict[str, object]:
        rows = grow(trainer.accelerator.unwrap_model(trainer.model), shape, trainer.state.global_step)
        paths = [{"prompt": row.prompt, "completion": row.completion, "own": row.own} for row in rows]
        return columns(paths)

    def replay(_: list[str], trainer: GRPOTrainer) -> dict[str, object]:  # noqa: ARG001
        return columns(json.loads(replayed.read_text()))

    rollout = replay if replayed else played if shape.turns > 1 else None
    return GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        processing_class=tokenizer,
        reward_funcs=rewards,
        args=settings(shape, out, replays=bool(replayed)),
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        callbacks=[callback],
        rollout_func=rollout,
    )


def columns(paths: list[dict[str, list[int]]]) -> dict[str, object]:
    """Paths as the trainer takes them. Without log-probabilities it takes its own, before the step."""
    columns = (("prompt_ids", "prompt"), ("completion_ids", "completion"), ("env_mask", "own"))
    return {name: [path[key] for path in paths] for name, key in columns} | {"logprobs": None}


def main() -> None:
    given, line = arguments(), Line()
    torch.set_num_threads(given.threads)
    shape = SHAPES[given.shape]
    with tempfile.TemporaryDirectory() as out:
        if given.replay is None:
            trainer(given.folder, shape, Turns(line), out, None).train()
            return
        kept = trainer(given.folder, shape, Keep(given.replay.parent), out, given.replay)
        kept.train()
        line.tell({"loss": next(entry["loss"] for entry in kept.state.log_history if "loss" in entry)})


if __name__ == "__main__":
    main()
