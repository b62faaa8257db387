"""ONI: labels from a model beside the run, their rewards, and that neither its speed nor a stop changes them."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from tests.asking import query_client
from tests.trees import ACTION, OBSERVATION, PROMPT, N, as_replayed, build, rewarded

from bough.ask import QueryClient
from bough.hooks import Oni
from bough.hooks.caption_model import CaptionModel
from bough.hooks.captions import read_label
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.hooks.oni import OniState
from bough.tree import Outcome, Rewarded, Task, Verdict

GOOD = ("key", "door")


def labeller(pause_s: float = 0.0, asked: list[str] | None = None) -> QueryClient:
    """A model that finds keys and doors good, after a pause; it compares by the number of good words."""

    async def text_of(prompt: str) -> str:
        await asyncio.sleep(pause_s)
        parts = prompt.split("\n")
        if asked is not None:
            asked.append(parts[2] if len(parts) == 5 else parts[1])
        if "Another is this" in prompt:
            first, second = (sum(word in text for word in GOOD) for text in (parts[2], parts[5]))
            return "0" if first == second else "1" if first > second else "2"
        return "1" if any(word in parts[2] for word in GOOD) else "The answer is 0."

    return query_client(text_of)


def game(*paths: Sequence[str]) -> Rewarded:
    """Paths of the observations that they read, a reward of 1 at the first path's end."""
    nodes = [N(parent=-1, kind=PROMPT, info={"text": "the key is lost"})]
    for number, read in enumerate(paths):
        above = 0
        for at, text in enumerate(read):
            ends = at == len(read) - 1
            paid = float(ends and number == 0)
            nodes.append(N(parent=above, kind=ACTION, tokens=(5,), env_reward=paid, info={"text": "act"}))
            outcome = Outcome.TERMINATED if ends else Outcome.OPEN
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=outcome, info={"text": text}))
            above = len(nodes) - 1
    return rewarded(build(*nodes))


def begun(ask: QueryClient, **settings: object) -> OniState:
    return Oni(**settings).build(HookSetup(ask=ask))  # type: ignore[arg-type]


async def nobody(task: Task) -> tuple[()]:
    del task
    return ()


async def step(state: OniState, *paths: Sequence[str]) -> list[float]:
    """One step of a run: what the observations are paid."""
    await state.rewrite([], nobody, state.data.captions.clock)
    (found,) = state.transform([game(*paths)], 0)
    state.observe()
    return found.channels["oni"][found.tree.kind == OBSERVATION].tolist()


def test_a_caption_is_paid_by_its_label_and_less_each_time_on_a_path() -> None:
    async def run() -> None:
        state = begun(labeller())
        path, other = ("a key", "a wall", "a key", "a key"), ("a key",)
        assert await step(state, path, other) == [0] * 5, "nothing is labelled yet"
        assert await step(state, path, other) == [0] * 5, "sent before this step"
        paid = await step(state, path, other)
        assert paid == pytest.approx([0.4, 0, 0.4 / 8, 0.4 / 27, 0.4], abs=2e-5)
        assert state.data.captions.labels == [(["a wall"], 0, 2), (["a key"], 1, 2)], (
            "the newest first, with the step of use"
        )

    asyncio.run(run())


def test_other_rewards_are_scaled_and_the_prompt_is_no_caption() -> None:
    (found,) = begun(labeller(), extrinsic=0.1).transform([game(["a key"], ["a wall"])], 0)
    assert found.channels["env"].tolist() == [0, 0.1, 0, 0, 0]
    state = begun(labeller(), caption=r"msg: (\w+)")
    state.transform([game(["hp 3 msg: open"], ["hp 2"])], 0)
    assert state.data.captions.queue == ["open"], "a part of the text; a text without it has no caption"
    state.transform([as_replayed(game(["msg: old"]))], 0)
    assert state.data.captions.queue == ["open"]


def test_a_slow_model_changes_nothing_on_the_clock() -> None:
    """The same rewards whatever the speed; a delay of 2 steps shifts them by one step."""

    async def run(pause_s: float, delay_steps: int) -> list[list[float]]:
        state = begun(labeller(pause_s), delay_steps=delay_steps)
        return [await step(state, ["a key", "a door"]) for _ in range(5)]

    fast, slow = asyncio.run(run(0, 1)), asyncio.run(run(0.02, 1))
    assert fast == slow
    late = asyncio.run(run(0, 2))
    assert fast[2] == late[3] == [0.4, 0.4]
    assert late[2] == [0, 0]


def test_a_run_without_a_clock_never_waits() -> None:
    async def run() -> None:
        state = begun(labeller(pause_s=1000.0), delay_steps=None)
        async with asyncio.timeout(120):
            assert [await step(state, ["a key"]) for _ in range(100)] == [[0.0]] * 100
        assert state.data.captions.sent == [["a key"]]

    asyncio.run(run())


def test_a_stop_with_a_batch_in_flight_changes_nothing() -> None:
    async def stopped(variant: str) -> tuple[list[list[float]], list[list[float]]]:
        words = [["a key", "a wall"], ["a stone", "a door"], ["a red key", "a wall"]]
        whole = begun(labeller(), variant=variant)
        first = [await step(whole, each) for each in words]
        saved = save(whole.data)
        assert whole.data.captions.sent, "a batch is in flight"
        resumed = begun(labeller(), variant=variant)
        restore(resumed.data, saved)
        del first
        return [await step(whole, each) for each in words], [await step(resumed, each) for each in words]

    for variant in ("retrieval", "classifier", "ranking"):
        one, other = asyncio.run(stopped(variant))
        assert one == other
        assert np.any(np.concatenate(one) > 0)


@pytest.mark.parametrize("variant", ["classifier", "ranking"])
def test_models_of_words_value_captions_without_a_label(variant: str) -> None:
    async def run() -> list[float]:
        state = begun(labeller(), variant=variant, steps=200, threshold=0.5)
        seen = ["a red key", "a blue key", "a grey wall", "a blue wall", "an iron door", "a grey stone", "a red stone"]
        for _ in range(3):
            await step(state, seen)
        return await step(state, ["a yellow key", "a yellow wall", "a wet stone"])

    key, wall, stone = asyncio.run(run())
    assert key > 0 == wall == stone


def test_scores_of_comparisons_are_paid_in_standard_deviations_of_all_captions_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scores 1, 2, 6 have mean 3 and deviation 2.160; with 9 mean 4.5 and 3.202; -.926 is below the threshold -.5."""
    monkeypatch.setattr(CaptionModel, "scores", lambda _, captions: np.asarray(captions, dtype=np.float64))
    state = begun(labeller(), variant="ranking")
    state.data.captions.labels.append((["1", "2"], 2, 0))

    def paid(*read: str) -> list[float]:
        (found,) = state.transform([game(read)], 0)
        return found.channels["oni"][found.tree.kind == OBSERVATION].tolist()

    assert paid("1", "2", "6") == pytest.approx([0, 0.4 * -0.46291, 0.4 * 1.38873], abs=1e-5)
    assert paid("9") == pytest.approx([0.4 * 4.5 / 3.20156], abs=1e-5)


@pytest.mark.parametrize("variant", ["retrieval", "classifier", "ranking"])
def test_captions_may_have_halves_of_signs(variant: str) -> None:
    """A text that was cut between the two halves of a sign."""

    async def run() -> None:
        state = begun(labeller(), variant=variant)
        for _ in range(4):
            await step(state, ["a key \ud83d", "a wall \ud83d"])
        restored = begun(labeller(), variant=variant)
        restore(restored.data, save(state.data))
        assert restored.data.captions == state.data.captions

    asyncio.run(run())


def test_the_queue_its_order_and_its_bounds() -> None:
    async def run() -> None:
        asked = list[str]()
        state = begun(labeller(asked=asked), batch=2, queue=3)
        await state.rewrite([], nobody, 0)
        state.transform([game(["one", "two", "three", "four"])], 0)
        assert state.observe()["oni/dropped"] == 1
        for _ in range(2):
            await step(state, ["one"])
        assert asked[:2] == ["three", "two"], "the newest first"
        assert not state.data.captions.queue
        assert len(state.data.captions.labels) + len(state.data.captions.sent) == 3

    asyncio.run(run())


@pytest.mark.parametrize("missing", [Verdict.LATE, Verdict.REFUSED])
def test_an_answer_without_a_label_is_no_number(missing: Verdict) -> None:
    async def silent(prompt: str) -> str | Verdict:
        return missing if "late" in prompt else "perhaps"

    async def run() -> None:
        state = begun(query_client(silent))
        for _ in range(3):
            assert await step(state, ["late", "vague"]) == [0, 0]
        assert state.data.captions.labels == []
        assert state.data.captions.unread == 2

    asyncio.run(run())
    assert [read_label(text, 1) for text in ("1", "0.", "is it 0? no: 1", "2", "0.5", "", "-1", "9" * 5000)] == [
        1,
        0,
        1,
        *[None] * 5,
    ]


def test_settings() -> None:
    with pytest.raises(ValueError, match="delay_steps: got 0; need at least 1, or None"):
        Oni(delay_steps=0)
    with pytest.raises(ValueError, match="need a regular expression"):
        Oni(caption="(")
    assert not Oni(delay_steps=None).needs
    assert len(Oni(role="judge").needs) == 2
