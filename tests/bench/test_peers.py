import argparse
import json
import sys

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

import peers
from bough.tree import leaves
from peer_bough import Run, completion, replay
from peer_generate import grow
from peer_model import write_model
from peer_shapes import CLIP, EPSILON, SHAPES, SIZES, Shape, reward
from stolen import Stolen

SMALL = Shape(
    name="small", prompts=2, forks=(2, 3), prompt_tokens=5, action_tokens=3, observation_tokens=4, trains=True
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("model")
    torch.set_num_threads(1)
    write_model(found)
    return found


def test_the_model_has_as_many_weights_as_said(folder):
    model = AutoModelForCausalLM.from_pretrained(folder)
    matrices = [weight for name, weight in model.named_parameters() if weight.ndim == 2 and "layers" in name]
    assert sum(weight.numel() for weight in matrices) == SIZES.trunk
    assert round(sum(weight.numel() for weight in model.parameters()) / 1e6, 1) == 2.0


def test_tokens_and_operations_are_those_of_trees_written_out():
    # (how many, first position, tokens): prompts, actions with their observations, last actions.
    trees = [(2, 0, 5), (4, 5, 7), (12, 12, 3)]
    paths = [(12, 0, 5), (12, 5, 7), (12, 12, 3)]
    for by_path, stretches in ((False, trees), (True, paths)):
        depths = [
            at + 1 for count, start, tokens in stretches for at in range(start, start + tokens) for _ in range(count)
        ]
        trained = 3 * (stretches[1][0] + stretches[2][0])
        assert SMALL.tokens(by_path=by_path) == len(depths)
        matrices = 6 * SIZES.trunk * len(depths) + 6 * 512 * 256 * trained
        assert SMALL.update_flops(by_path=by_path) == (matrices, 14 * 4 * 256 * sum(depths))


def test_shapes_are_those_of_the_page():
    sizes = {name: (shape.paths, shape.turns, shape.tokens()) for name, shape in SHAPES.items()}
    assert sizes["step"] == (64, 1, 8 * 128 + 64 * 32)
    assert sizes["step-chains"] == (64, 8, 8 * 96 + 64 * (8 * 48 - 40))
    assert sizes["step-trees"] == (256, 5, 8 * (96 + 30 * 48 + 32 * 8))
    assert sizes["agents"][:2] == (128, 8)


def test_rounds_differ_and_repeat():
    first, again, other = (SMALL.texts(seed) for seed in (1, 1, 2))
    assert (first.prompts == again.prompts).all()
    assert (first.prompts != other.prompts).any()


def test_trees_cost_what_a_plain_loop_over_their_paths_costs(folder):
    paths, loss, slopes = replay(folder, SMALL)
    assert len(paths) == SMALL.paths
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    paid = torch.tensor([reward(path["completion"]) for path in paths]).view(SMALL.prompts, -1)
    advantage = ((paid - paid.mean(1, keepdim=True)) / (paid.std(1, keepdim=True) + EPSILON)).flatten()
    count = sum(sum(path["own"]) for path in paths)
    total = torch.zeros(())
    for path, gain in zip(paths, advantage, strict=True):
        text = torch.tensor([path["prompt"] + path["completion"]])
        logits = model(text).logits[0, len(path["prompt"]) - 1 : -1]
        logprob = logits.log_softmax(-1).gather(-1, torch.tensor(path["completion"])[:, None])[:, 0]
        ratio = (logprob - logprob.detach()).exp()
        value = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain)
        total = total - (value * torch.tensor(path["own"])).sum() / count
    total.backward()
    assert loss == pytest.approx(float(total.detach()), abs=1e-5)
    theirs = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    assert set(theirs) == set(slopes)
    for name, slope in slopes.items():
        torch.testing.assert_close(slope, theirs[name], rtol=1e-3, atol=1e-6)


def test_chains_of_a_prompt_end_at_different_turns(folder):
    shape = Shape(
        name="ends", prompts=2, forks=(3, 1, 1), prompt_tokens=5, action_tokens=2, observation_tokens=1, fewest_turns=1
    )
    assert [turn.tolist() for turn in shape.texts(0).goes_on] == [
        [False, True, True] * 2,
        [False, False, True] * 2,
        [False] * 6,
    ]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    plain = [len(row.completion) for row in grow(model, shape, seed=0)]
    run = Run(folder, shape)
    ours = [len(completion(tree, leaf)[0]) for tree in run.trees(0) for leaf in leaves(tree).tolist()]
    assert plain == ours == [2, 5, 8] * 2


def test_the_loop_around_generate_grows_the_same_shape(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    rows = grow(model, SMALL, seed=0)
    texts = SMALL.texts(0)
    assert len(rows) == SMALL.paths
    assert all(row.own == [1] * 3 + [0] * 4 + [1] * 3 for row in rows)
    # Three branches share what was written before their fork.
    assert [row.completion[:7] for row in rows[:3]] == [rows[0].completion[:7]] * 3
    assert rows[3].completion[3:7] == texts.observations[0][1].tolist()
    assert rows[-1].prompt == texts.prompts[1].tolist()


def side(seconds, **more):
    return {"seconds": seconds, **more}


def test_ratios_are_medians_of_rounds_and_what_is_missing_is_a_dash():
    rounds = [
        {
            "bough": side(1.0, generation=0.4, update=0.5, limit=0.4),
            "trl": side(2.0),
        },
        {"bough": side(4.0, generation=3.0, update=0.8, limit=0.4), "trl": side(12.0)},
        {"bough": side(2.0, generation=0.6, update=1.0, limit=0.7), "trl": side(8.0)},
    ]
    line = peers.step_line(SHAPES["step"], rounds)
    assert line == "| `step` | 3,072 / 10,240 | 8.00 | 2.00 (0.60, 0.80) | **3.00** | 0.70 |"
    assert peers.step_line(SHAPES["step"], []).endswith("| - | - (-, -) | **-** | - |")
    alone = [{"bough": side(2.0, tokens=100), "generate": side(5.0, tokens=100)}]
    assert peers.generation_line(SHAPES["agents"], alone) == "| `agents` | 50 | 20 | - | **2.50** | **-** | - | **-** |"


def test_rounds_that_are_kept_are_not_run_again(tmp_path, monkeypatch):
    asked = []

    class Counted:
        def __init__(self, _, script, *__, **___):
            self.name = script

        def ask(self, seed):
            asked.append((self.name, seed))
            return {"seconds": 1.0, "tokens": 1, "stolen": 0.0}

        def close(self):
            pass

    monkeypatch.setattr(peers, "Side", Counted)
    file = tmp_path / "peers.json"
    given = argparse.Namespace(trl_python=None, vllm_python=None, rounds=2, threads=1, results=file)
    results = {}
    peers.measure(SHAPES["prompts"], given, results)
    # Round 0 is not timed; then the two take turns at being first.
    sides = ["bough", "generate"]
    assert asked == [(side, seed) for seed in range(3) for side in (sides[::-1] if seed == 2 else sides)]
    kept = json.loads(file.read_text())
    given.rounds = 3
    peers.measure(SHAPES["prompts"], given, kept)
    assert len(asked) == 6 + 2 + 2
    assert len(json.loads(file.read_text())["prompts x1"]) == 3
    peers.measure(SHAPES["prompts"], given, kept)
    assert len(asked) == 10


def test_disturbed_rounds_are_run_again_and_not_for_ever():
    class Disturbed:
        name = "trl"

        def __init__(self, *stolen):
            self.stolen = iter(stolen)

        def ask(self, seed):
            return {"seconds": float(seed), "stolen": next(self.stolen)}

    assert peers.undisturbed(Disturbed(0.06, 0.5, 0.05, 0.0), seed=3) == {"seconds": 2003.0, "stolen": 0.05}
    with pytest.raises(RuntimeError, match="trl: got 50 rounds of which the machine's host took more than 5%"):
        peers.undisturbed(Disturbed(*[0.9] * 51), seed=3)


def test_stolen_time_is_a_share_of_the_time_in_which_something_ran_or_could_have(tmp_path):
    clock = tmp_path / "stat"
    clock.write_text("cpu  100 10 50 900 5 1 2 40 7 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    stolen = Stolen(clock)
    assert stolen.share() == 0
    clock.write_text("cpu  160 20 60 2900 95 6 7 50 7 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    assert stolen.share() == 10 / (10 + 60 + 10 + 10 + 5 + 5)
    assert Stolen(tmp_path / "none").share() == 0


FAKE = """
import sys
sys.path.insert(0, {bench!r})
from peer_line import Line

line = Line()
print("a library's noise")

def rounds(seed):
    print("more of it")
    if seed == 3:
        raise SystemExit("out of memory")
    return {{"seconds": seed / 2}}

line.serve(rounds)
"""


def test_sides_answer_through_noise_and_say_why_they_end(tmp_path, monkeypatch):
    (tmp_path / "peer_fake.py").write_text(FAKE.format(bench=str(peers.HERE)))
    monkeypatch.setattr(peers, "HERE", tmp_path)
    side = peers.Side(sys.executable, "fake", threads=1, log=tmp_path / "log")
    assert side.first == {}
    said = [side.ask(seed) for seed in (1, 2)]
    assert [each["seconds"] for each in said] == [0.5, 1.0]
    assert all(0 <= each["stolen"] <= 1 for each in said)
    with pytest.raises(RuntimeError, match=r"fake: ended without an answer\n(.|\n)*out of memory"):
        side.ask(3)
    side.close()


@pytest.mark.parametrize(
    ("loss", "slope", "said"),
    [(0.5, 1.0, None), (0.6, 1.0, "losses of 0.5 and 0.6"), (0.5, 1.01, "gradients 1.0e-02 of their length apart")],
)
def test_another_loss_or_gradient_stops_the_measurement(tmp_path, monkeypatch, loss, slope, said):
    monkeypatch.setattr(peers, "HERE", tmp_path)
    monkeypatch.setattr(peers, "replay", lambda *_: ([], 0.5, {"weight": torch.ones(4)}))
    (tmp_path / "peer_trl.py").write_text(f"print('{{\"loss\": {loss}}}')")
    save_file({"weight": torch.full((4,), slope)}, tmp_path / "gradient.safetensors")
    given = argparse.Namespace(trl_python=sys.executable, threads=1)
    if said is None:
        peers.check(SMALL, given, tmp_path, ())
    else:
        with pytest.raises(AssertionError, match=said):
            peers.check(SMALL, given, tmp_path, ())
