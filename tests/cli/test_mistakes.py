"""Bad input: a status, and one message that names the field, the place and the remedy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.talk import SMALL, Bough

USAGE, FAILED = 2, 1
FROZENLAKE, RUN = "grpo_frozenlake", f"{SMALL}:run"

PIECES = """
from dataclasses import dataclass, replace

import numpy as np

from bough.credit import Grpo
from bough.env import Branching, State, Step
from bough.tree import Outcome, Task
from tests.small import run as small


def number():
    return 3


def breaks():
    return {}["gone"]


def run():
    return small()


@dataclass(frozen=True, slots=True, kw_only=True)
class Raises:
    def __call__(self, group):
        raise KeyError("bonus")


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    def __call__(self, group):
        return [{"short": np.zeros(1)} for _ in group]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    def __call__(self, group):
        return [{"words": np.full(tree.nodes, "much")} for tree in group]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    def __call__(self, group):
        return [{"unknown": np.full(tree.nodes, np.nan)} for tree in group]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fewer:
    def __call__(self, rewarded):
        return Grpo()(rewarded)[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    def __call__(self, rewarded):
        return Grpo()(rewarded)[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    broken: str = ""
    branching: Branching = Branching.COPY
    instructions: str = "Count."

    def tasks(self, split, count, seed):
        return None if self.broken == "tasks" else [Task(id=f"{split}-{index}") for index in range(count)]

    def start(self, task):
        return "0" if self.broken == "start" else State(observation="0", key="0", value=0, admissible=("one", "two"))

    def step(self, state, action):
        if self.broken == "raise":
            raise RuntimeError("the counter is stuck")
        return "one more" if self.broken == "step" else Step(state=state, outcome=Outcome.TERMINATED)


def world():
    return small().replace(env=Count(), warmup=replace(small().world.warmup, demonstrations=0))
"""

SEEN_AT_ONCE = [
    (("train", "grpo_frozenlak"), USAGE, "method: unknown name 'grpo_frozenlak'; did you mean 'grpo_frozenlake'?"),
    (("train", "nowhere.py:run"), USAGE, "there is no file nowhere.py; need path/to/file.py"),
    (("train", "syntax.py"), USAGE, "syntax.py cannot be imported: SyntaxError: invalid syntax (syntax.py, line 1)"),
    (("train", "pieces.py:rn"), USAGE, "method 'pieces.py:rn': unknown name 'rn'; did you mean 'run'?"),
    (("train", "pieces.py:number"), USAGE, "number() returned int; need a bough.train.Run"),
    (("train", "pieces.py:breaks"), USAGE, "breaks() raised KeyError: 'gone' (*pieces.py, line 17, in breaks)"),
    (
        ("train", "grpo", "--policy", "./nowhere"),
        USAGE,
        "'./nowhere': got a folder that does not exist; need a",
    ),
    (("train", "grpo", "--policy", "gpt2"), USAGE, "need a preset's name*'pretrained(path=gpt2)'"),
    (("train", "grpo", "--policy", "done/finl"), USAGE, "got a folder that does not exist*did you mean 'done/final'?"),
    (("train", "grpo", "--policy", "smollm"), USAGE, "unknown name 'smollm'; did you mean 'smollm2'?"),
    (("train", "Qwen/Qwen3-0.6B"), USAGE, "method 'Qwen/Qwen3-0.6B': got text that is no name*by --policy"),
    (("train", "dapo(high=0.3"), USAGE, "got 'dapo(high=0.3' without ')'; close it"),
    (
        ("train", "grpo", "policy=Pretrained(path=gpt2)"),
        USAGE,
        "Pretrained.path: got 'gpt2', which is no folder and no file; need",
    ),
    (
        ("train", "grpo", "policy=Pretrained(path=done)"),
        USAGE,
        "no weights in 'done'*trained policy is 'done/final'",
    ),
    (("train", "grpo", "policy=Pretrained(path=empty)"), USAGE, "got no config in 'empty'; need config.json"),
    (("list", "Grop"), USAGE, "unknown name 'Grop'; did you mean 'Grpo' or 'grpo'?"),
    (("list", "mtcs"), USAGE, "unknown name 'mtcs'; did you mean 'mcts'?"),
    (("resume", "nowhere"), FAILED, "nowhere: got a folder that does not exist; need one that `bough train` made"),
    (("eval", "nowhere"), FAILED, "nowhere: got a folder that does not exist; need one that `bough train` made"),
    (("export", "nowhere", "out.jsonl"), FAILED, "nowhere: got a folder that does not exist; need one that"),
    (("search", "no/run", "mcts()"), FAILED, "no/run: got a folder that does not exist; need one that"),
    (("train", "arena_rl", "topology=swis"), USAGE, "topology: got 'swis'; need 'anchor', 'round_robin', "),
    (
        ("train", "arena_rl(n=2)", "topology=swiss"),
        USAGE,
        "topology: got a field that is an argument of arena_rl; need 'arena_rl(n=2, topology=swiss)'",
    ),
    (("search", FROZENLAKE, "mcts()"), FAILED, "need the directory of a trained run, or an engine"),
    (
        ("train", FROZENLAKE, "--out", "file"),
        FAILED,
        "cannot write file/grpo_frozenlake: not a directory; need a",
    ),
]

CHANGES = [
    ("stepz=3", "stepz: unknown name 'stepz'; did you mean 'steps'? in Run"),
    (
        "learning_rate=1",
        "learning_rate: unknown name*did you mean 'optimizer.learning_rate' or 'warmup.learning_rate'?",
    ),
    ("lr=1", "lr: unknown name 'lr'; did you mean 'optimizer.learning_rate' or 'warmup.learning_rate'? in Run"),
    ("optimizer.lr=1", "optimizer.lr: unknown name 'lr'; did you mean 'learning_rate'? in Optimizer"),
    ("max_tokens=4", "max_tokens: unknown name 'max_tokens'; did you mean 'sampling.max_tokens'? in Run"),
    ("tempereature=1", "did you mean 'evaluation.temperature' or 'sampling.temperature'?"),
    ("n=4", "n: unknown name 'n'; did you mean 'explorer.n'? in Run"),
    ("optimizer=Optimizer(epoch=1)", "unknown name 'epoch'; did you mean 'epochs'?"),
    ("optimizer.learning_rat=1", "optimizer.learning_rat: unknown name 'learning_rat'; did you mean 'learning_rate'?"),
    ("optimizer.moment_bits=8", "optimizer.moment_bits: unknown name 'moment_bits'; did you mean 'momentum'?"),
    ("steps", "got 'steps'; need field=value, as in optimizer.learning_rate=3e-4"),
    ("=3", "got '=3'; need field=value, as in optimizer.learning_rate=3e-4"),
    ("steps=many", "steps: got 'many'; need a valid integer"),
    ("steps=2.5", "steps: got 2.5; need a valid integer"),
    ("steps=-1", "Schedule.steps: got -1; need 0 or more"),
    ("steps=true", "steps: got True; need a number"),
    ("batch_tasks=0", "Schedule.batch_tasks: got 0; need 1 or more"),
    ("batch_tasks=5000", "batch_tasks: got 5000 with tasks.count=2000; need*lower batch_tasks, or raise tasks.count"),
    ("name=", "Run.name: got ''; need a name that can be a folder's"),
    ("name=a/b", "Run.name: got 'a/b'; need a name that can be a folder's"),
    ("name=a\nb", "Run.name: got 'a\\nb'; need a name that can be a folder's"),
    ("name=" + 300 * "x", "Run.name: got 300 bytes, 'xxxxx*; need at most 255, the longest name of a folder"),
    ("name.first=x", "name.first: name is 'grpo_frozenlake', which has no fields; need name=VALUE"),
    ("optimizer.learning_rate=nan", "optimizer.learning_rate: got nan; need a number"),
    ("optimizer.learning_rate=inf", "Optimizer.learning_rate: got inf; need a finite number above 0"),
    ("optimizer.learning_rate=-1", "Optimizer.learning_rate: got -1.0; need a finite number above 0"),
    ("optimizer.learning_rate=1e-4x", "optimizer.learning_rate: got '1e-4x'; need a valid number"),
    ("optimizer.betas=3", "optimizer.betas: got 3; need a valid tuple"),
    ("optimizer.betas=[0.9,2]", "Optimizer.betas: got (0.9, 2.0); need two numbers from 0 to below 1"),
    ("credit=Grop", "credit: unknown name 'Grop'; did you mean 'Grpo'?"),
    ("credit=GRPO", "credit: unknown name 'GRPO'; did you mean 'Grpo'?"),
    ("credit=Rlo", "credit: unknown name 'Rlo'; did you mean 'rloo'?"),
    ("credit=Grpo(stdd=none)", "credit.stdd: unknown name 'stdd'; did you mean 'std'? in Grpo"),
    ("credit=Grpo(none)", "credit: got the argument 'none'; need name=value"),
    ("credit=Grpo(std=none", "credit: got 'Grpo(std=none' without ')'; close it, or put text into quotes"),
    ("credit.std=sometimes", "credit.std: got 'sometimes'; need 'group', 'batch' or 'none'"),
    ("credit=EnvReward", "credit: got EnvReward, whose __call__ takes (group*need a Credit*offered: Archer*Grpo"),
    ("credit=pieces.py:Nothing()", "credit: unknown name 'Nothing'; need one of *Fewer*in pieces.py"),
    ("credit=gone.py:Rule()", "credit: there is no file gone.py; need path/to/file.py:name"),
    ("credit=Gae()", "credit=Gae: needs the head 'value' of a critic; got critic=None; set critic=ValueHead("),
    ("explorer=LabelParser", "explorer: got LabelParser*need an Explorer*offered: Aries, BeforeUpdates"),
    ("explorer=mtcs()", "explorer: unknown name 'mtcs'; did you mean 'mcts'?"),
    ("explorer=mcts(widht=3)", "explorer.widht: unknown name 'widht'; did you mean 'width'? in mcts"),
    ("explorer.n=0", "explorer.n: Chains: got n=0, retries=2; need n >= 1"),
    ("rewards=EnvReward", "rewards: got EnvReward; need several pieces, as in [Name, Name(field=value)]"),
    ("rewards.4=Success", "rewards.4: got '4'; need a number from 0 to 0"),
    ("rewards=[EnvReward, Sucess]", "rewards.1: unknown name 'Sucess'; did you mean 'Success'?"),
    ("objective=PpoClip(low=-1)", "PpoClip.low: got -1.0; need a number from 0 to below 1"),
    ("env=3", "env: got 3; need a piece, written as Name or Name(field=value)"),
    ("env.size=1", "FrozenLake.size: got 1; need 2 or more"),
    ("sampling.temperature=0", "World.sampling.temperature: got 0; need more than 0"),
    ("sampling.max_tokens=0", "Sampling.max_tokens: got 0; need at least 1"),
    ("limits.turns=0", "Limits.turns: got 0; need at least 1"),
    ("health.gap=0", "health.gap: Health: got*gap=0.0*need*a number above 0"),
    ("staleness=9", "Execution.staleness: got 9; need 0 to 8"),
]

SEEN_WHEN_BUILT = [
    ((RUN, "rewards=[EnvReward, EnvReward]"), USAGE, "got EnvReward twice*the channel 'env'; need*remove one"),
    ((RUN, "explorer.n=1"), USAGE, "explorer=Chains: got 1 path a task and credit=Grpo*set explorer.n=2"),
    ((RUN, "evaluation.tasks.split=train"), USAGE, "evaluation.tasks: got 6 of 6 tasks that are trained on*need"),
    (
        (RUN, "tasks.file=gone.jsonl"),
        USAGE,
        "tasks.file: cannot read gone.jsonl: no such file*; need a file",
    ),
    ((RUN, "tasks.file=broken.jsonl"), USAGE, "tasks.file: broken.jsonl, line 1: no JSON*; need one task"),
    ((RUN, "tasks.count=500", "env.size=2"), USAGE, "FrozenLake.tasks: got count=500*need a smaller count"),
    ((RUN, "warmup.demonstrations=13"), USAGE, "warmup.demonstrations: got 13; need at most tasks.count"),
    ((RUN, "policy.context_tokens=24"), USAGE, "need fewer than the 24*Shorten the instructions"),
    (
        (RUN, "policy=Pretrained(path=empty)"),
        USAGE,
        "Pretrained.path: got no config in 'empty'; need config.json",
    ),
    (
        (RUN, "policy=Pretrained(path=org/name)"),
        USAGE,
        "Pretrained.path: got 'org/name'*do: hf download org/name",
    ),
    (
        (RUN, "credit=pieces.py:Fewer()"),
        USAGE,
        "credit=Fewer: got 1 trees for 2; need one Credited for each",
    ),
    ((RUN, "credit=pieces.py:Turned()"), USAGE, "credit=Turned: got another tree at place 0*in their order"),
    ((RUN, "rewards=[pieces.py:Raises()]"), FAILED, "KeyError: 'bonus' (*pieces.py, line 27, in __call__)"),
    (
        (RUN, "rewards=[pieces.py:Short()]"),
        USAGE,
        "rewards=Short: channel 'short'*need an array of 17 numbers",
    ),
    (
        (RUN, "rewards=[pieces.py:Words()]"),
        USAGE,
        "rewards=Words: channel 'words'*need an array of 17 numbers",
    ),
    (
        (RUN, "rewards=[pieces.py:Unknown()]"),
        USAGE,
        "rewards=Unknown*got nan at node 0; need finite numbers",
    ),
    (("pieces.py:world", "env.broken=step"), FAILED, "Count.step: got 'one more' of type str; need a Step"),
    (("pieces.py:world", "env.broken=start"), FAILED, "Count.start: got '0' of type str; need a State"),
    (
        ("pieces.py:world", "env.broken=raise"),
        FAILED,
        "RuntimeError: the counter is stuck (*pieces.py, line 74, in step)",
    ),
    (("pieces.py:world", "env.broken=tasks"), USAGE, "Count.tasks('train', 12, ...): got None*need a list of Task"),
]


@pytest.fixture(scope="module")
def fresh() -> Iterator[Bough]:
    """Commands in a process that has not imported torch."""
    process = Bough()
    process("list", "Grpo", folder=Path.cwd())
    yield process
    process.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pieces.py").write_text(PIECES)
    (tmp_path / "syntax.py").write_text("def run(:\n")
    (tmp_path / "broken.jsonl").write_text('{"id": "a"\n')
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "done" / "final").mkdir(parents=True)
    (tmp_path / "done" / "config.json").write_text("{}")
    return tmp_path


def refused(bough: Bough, project: Path, arguments: tuple[str, ...], status: int, told: str) -> None:
    """Check the message; `*` in it stands for any text."""
    error = bough(*arguments, folder=project).error(status)
    place = 0
    for part in told.split("*"):
        place = error.find(part, place)
        assert place >= 0, (part, error)
    assert not list(project.glob("runs/*")), "the name is free for the next attempt"


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [*SEEN_AT_ONCE, *((("train", FROZENLAKE, change), USAGE, told) for change, told in CHANGES)],
)
def test_what_the_command_line_shows(
    fresh: Bough, project: Path, arguments: tuple[str, ...], status: int, told: str
) -> None:
    """Such a mistake is reported before torch is imported, which takes longer than all the rest."""
    refused(fresh, project, arguments, status, told)
    assert not fresh.imported("torch")


@pytest.mark.parametrize(("arguments", "status", "told"), SEEN_WHEN_BUILT)
def test_what_a_run_shows_before_it_begins(
    bough: Bough, project: Path, arguments: tuple[str, ...], status: int, told: str
) -> None:
    refused(bough, project, ("train", *arguments), status, told)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("trian", FROZENLAKE), "No such command 'trian'. Did you mean 'train'?"),
        (("train",), "Missing argument 'method'"),
        (("eval", "nowhere", "--step", "x"), "Invalid value for '--step'"),
    ],
)
def test_commands_and_options(bough: Bough, tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    said = bough(*arguments, folder=tmp_path)
    assert said.status == USAGE
    assert told in said.err
    assert "Traceback" not in said.err
