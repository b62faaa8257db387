"""GRACE: the arithmetic of its reward, what has no effect, and embeddings of a real policy."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.trees import ACTION, PROMPT, N, as_replayed, build, rewarded

from bough.cli.find import find_run
from bough.credit import dr_grpo
from bough.hooks import Contrastive
from bough.hooks.contrastive import ContrastiveState, TaskEmbeddings, cosines, find
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.learner.embeddings import mean_states
from bough.policy import Tiny
from bough.tree import Floats, Outcome, Rewarded, Task, Ternary, Tree


def turned(*degrees: float) -> Floats:
    """[n, 2]: vectors of length 1 at angles."""
    angle = np.radians(degrees)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def begun(**settings: float) -> ContrastiveState:
    """A state whose embedding of a text is the angle of its last token, ten degrees each."""

    def states(texts: Sequence[NDArray[np.int32]], first: Sequence[int]) -> Floats:
        assert all(begin < len(text) for text, begin in zip(texts, first, strict=True))
        return 3 * turned(*(10.0 * int(text[-1]) for text in texts))

    policy = PolicyAccess(mean_states=states, tokens=lambda text: [ord(each) for each in text])
    return replace(Contrastive(temperature=1.0), **settings).build(HookSetup(policy=policy))


def written(*angles: int, task: str = "a", query: int | None = 0, negative: int | None = 9, cut: int = -1) -> Rewarded:
    """A task with paths of these angles, in tens of degrees; the path `cut` was cut off."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(7, 8))]
    for number, angle in enumerate(angles):
        over = Outcome.TERMINATED
        nodes.append(N(parent=0, kind=ACTION, tokens=(angle,), outcome=over, cut_off=number == cut))
    data = {name: chr(value) for name, value in (("query", query), ("negative", negative)) if value is not None}
    return rewarded(replace(build(*nodes), task=Task(id=task, data=data)))


def paid(state: ContrastiveState, *tasks: Rewarded) -> list[list[float]]:
    return [each.channels["contrastive"][1:].tolist() for each in state.transform(tasks, 0)]


def advantages(found: Sequence[Rewarded]) -> list[list[float]]:
    return [each.path_advantage.tolist() for each in dr_grpo()(found)]


def test_the_worked_example() -> None:
    state = Contrastive(temperature=1.0).build(HookSetup())
    one = TaskEmbeddings(query=turned(0, 0), paths=turned(10, 40), negative=turned(90)[0])
    other = TaskEmbeddings(query=turned(180, 180), paths=turned(170, 120), negative=turned(90)[0])
    first, second = (state.reward(each) for each in cosines([one, other]))
    assert first.tolist() == pytest.approx([1.258013, 1.03925], abs=2e-5)
    assert second.tolist() == pytest.approx([1.266574, 0.781766], abs=2e-5)


def test_the_worked_example_on_trees() -> None:
    state = begun()
    tasks = written(1, 4), written(17, 12, task="b", query=18)
    assert paid(state, *tasks) == [
        pytest.approx([1.258013, 1.03925], abs=2e-5),
        pytest.approx([1.266574, 0.781766], abs=2e-5),
    ]
    metrics = state.observe()
    assert metrics["contrastive/cluster"] == pytest.approx((0.866025 + 0.642788) / 2, abs=2e-5)
    assert metrics["contrastive/negative"] == pytest.approx(0, abs=1e-9)


def test_what_is_constant_in_a_task_has_no_effect() -> None:
    """Another negative, and other tasks: advantages of a task are equal to the bit. Its own paths matter."""
    paths = (1, 4, 7, 3)
    near, far = (
        begun().transform([written(*paths, negative=0)], 0),
        begun().transform([written(*paths, negative=17)], 0),
    )
    assert near[0].returns().tolist() != far[0].returns().tolist()
    crowd = begun().transform([written(*paths, negative=0), written(2, 5, task="b")], 0)
    assert advantages(near)[0] == advantages(far)[0] == advantages(crowd)[0]
    assert any(advantages(near)[0])


def test_the_cluster_pays_for_equal_texts() -> None:
    apart, together = paid(begun(cluster=1.0), written(3, 33)), paid(begun(cluster=1.0), written(3, 3))
    assert together[0][0] > apart[0][0] + 0.4, "3 and 33 are equally near to the query"
    assert paid(begun(cluster=0.0), written(3, 33))[0][0] == pytest.approx(
        paid(begun(cluster=0.0), written(3, 3))[0][0]
    )


def test_which_paths_are_paid() -> None:
    assert paid(begun(), written(1, 4, cut=0))[0][0] == -1, "in place of the reward"
    assert paid(begun(), written(1, 4, query=None)) == [[0, 0]]
    assert paid(begun(), as_replayed(written(1, 4))) == [[0, 0]]
    (alone,) = paid(begun(cross=5.0), written(1, negative=None))
    assert alone == [pytest.approx(np.cos(np.radians(10)), abs=1e-8)], "no other path, no other task, no negative"
    unknown = written(1, 4)
    columns = unknown.tree.columns() | {"cut_off": np.full(3, Ternary.UNKNOWN, dtype=np.int8)}
    tree = Tree(task=unknown.tree.task, info=unknown.tree.info, **columns)  # type: ignore[arg-type]
    assert paid(begun(), rewarded(tree)) == paid(begun(), unknown), "unknown is not cut off"
    failed = written(5, task="b")
    failed = rewarded(replace(failed.tree, outcome=np.asarray([0, Outcome.FAILED], dtype=np.int8)))
    assert paid(begun(), written(1, 4), failed) == [paid(begun(), written(1, 4))[0], [0]], "no path, no other task"
    scaled = paid(begun(temperature=0.1), written(1, 4))[0]
    assert scaled == pytest.approx([10 * each for each in paid(begun(), written(1, 4))[0]])


def test_embeddings_leave_out_what_stands_before_the_text() -> None:
    """Means over a real model's states, against a pass for each text."""
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=300).build(["a text"])
    texts = [np.asarray(each, dtype=np.int32) for each in ([5, 6, 7, 8], [5, 6, 9], [4])]
    found = mean_states(policy, texts, [2, 0, 0], 3)
    whole = mean_states(policy, [texts[0][:3]], [2], 64)
    last = mean_states(policy, [texts[0]], [3], 64)
    assert np.allclose(found[0].numpy(), (whole[0] + last[0]).numpy() / 2, atol=1e-5)
    assert np.allclose(found[2].numpy(), mean_states(policy, [texts[2]], [0], 64)[0].numpy(), atol=1e-5)
    part = np.asarray([7, 8], dtype=np.int32)
    assert (find(texts[0], part), find(texts[1], part), find(texts[1], part[:0])) == (2, 0, 0)


def test_the_method_pays_embeddings_and_divides_neither_by_a_deviation_nor_by_a_length() -> None:
    run = find_run("grace(cross=0.3)", "passages")
    assert run.method.hooks == (Contrastive(cross=0.3),)
    assert run.method.credit == dr_grpo()
    assert run.method.normalizer.by == "constant"


def test_settings() -> None:
    with pytest.raises(ValueError, match=r"temperature: got 0"):
        Contrastive(temperature=0.0)
    with pytest.raises(ValueError, match=r"cluster: got -1"):
        Contrastive(cluster=-1.0)
