"""A side of bench/peers.py: a plain loop around `generate` of transformers, which reads all rows anew at every turn."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from peer_line import Line, arguments
from peer_shapes import SHAPES, Shape


@dataclass(slots=True, kw_only=True)
class Row:
    """A path while it grows; `own` says which tokens after the prompt the policy wrote."""

    prompt: list[int]
    completion: list[int] = field(default_factory=list[int])
    own: list[int] = field(default_factory=list[int])

    def add(self, tokens: Sequence[int], *, own: bool) -> None:
        """Go on with more tokens."""
        self.completion.extend(tokens)
        self.own.extend([int(own)] * len(tokens))

    def copy(self) -> "Row":
        """A branch."""
        return Row(prompt=self.prompt, completion=[*self.completion], own=[*self.own])


def grow(model: PreTrainedModel, shape: Shape, seed: int) -> list[Row]:
    """All paths of a round. What branches share is written once, and read again by each."""
    texts = shape.texts(seed)
    rows = [Row(prompt=prompt) for prompt in texts.prompts.tolist()]
    there = [True] * shape.prompts
    for forks, observations, goes_on in zip(shape.forks, texts.observations, texts.goes_on, strict=True):
        rows = [row.copy() for row in rows for _ in range(forks)]
        going = [row for place, row in enumerate(rows) if there[place // forks]]
        for row, tokens in zip(going, write(model, going, shape.action_tokens), strict=True):
            row.add(tokens, own=True)
        there = goes_on.tolist()
        for row, observation in itertools.compress(zip(rows, observations.tolist(), strict=True), there):
            row.add(observation, own=False)
    return rows


def write(model: PreTrainedModel, rows: Sequence[Row], tokens: int) -> list[list[int]]:
    """The next tokens of every row; shorter rows are padded on the left."""
    texts = [torch.tensor(row.prompt + row.completion) for row in rows]
    padding = {"batch_first": True, "padding_side": "left"}
    read = torch.nn.utils.rnn.pad_sequence(texts, **padding)
    real = torch.nn.utils.rnn.pad_sequence([torch.ones_like(text) for text in texts], **padding)
    with torch.no_grad():
        written = model.generate(
            input_ids=read,
            attention_mask=real,
            max_new_tokens=tokens,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            eos_token_id=None,
            pad_token_id=0,
        )
    return written[:, read.shape[1] :].tolist()


def main() -> None:
    given, line = arguments(), Line()
    torch.set_num_threads(given.threads)
    model = AutoModelForCausalLM.from_pretrained(given.folder, dtype=torch.float32).eval()
    shape = SHAPES[given.shape]

    def rounds(seed: int) -> dict[str, float]:
        torch.manual_seed(seed)
        begin = time.perf_counter()
        rows = grow(model, shape, seed)
        return {"seconds": time.perf_counter() - begin, "tokens": sum(sum(row.own) for row in rows)}

    line.serve(rounds)


if __name__ == "__main__":
    main()
