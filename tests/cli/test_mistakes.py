"""Bad input: a status, and one message that names the field, the place and the remedy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.policy import folders
from tests.talk import ONE_STEP, SMALL, Bough

USAGE, FAILED = 2, 1
FROZENLAKE, RUN = "grpo_frozenlake", f"{SMALL}:run"

PIECES = """
import os
from dataclasses import dataclass, replace

import numpy as np

from bough.context import ToolCalls
from bough.credit import Grpo
from bough.env import Branching, State, Step, call, tools_env
from bough.reward import EnvReward
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
        tasks = [Task(id=f"{split}-{index}") for index in range(count)]
        return {"tasks": None, "no task": ["x"], "twins": [Task(id="x")] * count}.get(self.broken, tasks)

    def start(self, task):
        return "0" if self.broken == "start" else State(observation="0", key="0", value=0, admissible=("one", "two"))

    def step(self, state, action):
        if self.broken == "raise":
            raise RuntimeError("the counter is stuck")
        if self.broken == "reward":
            return Step(state=state, reward="much")
        if self.broken == "later":
            return None if state.value else Step(state=replace(state, value=1))
        return "one more" if self.broken == "step" else Step(state=state, outcome=Outcome.TERMINATED)


def world():
    return small().replace(env=Count(), warmup=replace(small().world.warmup, demonstrations=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    returned: str = "loss"
    needs = frozenset()

    def __call__(self, inputs):
        from bough.objective import Loss

        value = inputs.logprob.mean()
        return {
            "tensor": value,
            "tokens": Loss(value=inputs.logprob, metrics={}),
            "metric": Loss(value=value, metrics={"many": inputs.logprob}),
            "detached": Loss(value=value.detach(), metrics={}),
        }[self.returned]


@dataclass(frozen=True, slots=True, kw_only=True)
class Huge:
    def __call__(self, group):
        return [{"huge": np.full(tree.nodes, 1e308)} for tree in group]


def alone():
    return small().replace(rewards=EnvReward())


def of_class():
    return small().replace(credit=Grpo)


def half():
    return small().replace(env=3)


def env_class():
    return small().replace(env=Count)


def dotted():
    return small().replace(**{"optimizer.learning_rate": 1e-3})


def leaves():
    raise SystemExit(0)


def quits():
    os._exit(0)


def tools(reward="right"):
    tasks = [{"prompt": f"get {number}", "n": number} for number in range(60)]
    env = tools_env(tools=[find], tasks=tasks, reward=globals()[reward], plan=plan)
    return small().replace(env=env, parser=ToolCalls())


def find(n: int) -> str:
    "Finds."
    return f"found {n}"


def right(state, row):
    return True


def unpaid(state, row):
    return None


def plan(state, row):
    return [call("find", n=row["n"]), "done"]
"""

DEEP = 20_000 * "["

LAKES = (
    *("tasks.file=lakes.jsonl", "tasks.count=2", "evaluation.tasks.file=lakes.jsonl", "evaluation.tasks.count=2"),
    *("warmup.demonstrations=0", "batch_tasks=2"),
)
"""Two tasks to train on, and to evaluate on."""

SEEN_AT_ONCE = [
    (("train", "\0"), USAGE, "method '\\x00': got text that is no name"),
    (("train", "grpo", "--policy", "\0"), USAGE, "--policy: got '\\x00', which is no folder"),
    (("train", "grpo", "--cluster", "gone.toml"), USAGE, "gone.toml"),
    (("train", "grpo", "--on", "frozenlake(size=9)"), USAGE, "size: unknown name 'size'"),
    (("train", "grpo", "--on", "pieces.py:number"), USAGE, "number() returned int; need a bough.train.World"),
    (("train", "pieces.py:quits"), FAILED, "SystemExit: os._exit(0) (*pieces.py, line*in quits)"),
    (("train", "pieces.py:leaves"), FAILED, "SystemExit: 0 (*pieces.py, line*in leaves)"),
    (("train", "pieces.py:alone"), USAGE, "World.rewards: got EnvReward; need several pieces: (EnvReward(...),)"),
    (("train", "pieces.py:of_class"), USAGE, "Method.credit: got the class Grpo; need a value: Grpo(...)"),
    (("train", "pieces.py:half"), USAGE, "World.env: got int, which lacks branching, *tasks; need an Env"),
    (("train", "pieces.py:env_class"), USAGE, "World.env: got the class Count; need a value: Count(...)"),
    (("train", "pieces.py:dotted"), USAGE, "optimizer.learning_rate: got a nested field as a keyword; need it among"),
    (("list", "\0"), USAGE, "unknown name '\\x00'"),
    (("eval", "--on", "shop"), USAGE, "--on shop: got a world without a policy; need --policy"),
    (("eval",), USAGE, "got neither a run nor a world; need one of the two"),
    (
        ("train", "grpo_frozenlak"),
        USAGE,
        "method: unknown name 'grpo_frozenlak'; did you mean 'grpo_frozenlake'?*`bough list methods` shows all, path/",
    ),
    (("train", "other.py"), USAGE, "unknown name 'run'; need one of make in *other.py"),
    (("train", "missing.py"), USAGE, "method 'missing.py': missing.py cannot be imported: *No module named"),
    (("train", "nowhere.py:run"), USAGE, "there is no file nowhere.py; need path/to/file.py"),
    (("train", "syntax.py"), USAGE, "syntax.py cannot be imported: SyntaxError: invalid syntax (syntax.py, line 1)"),
    (("train", "pieces.py:rn"), USAGE, "method 'pieces.py:rn': unknown name 'rn'; did you mean 'run'?"),
    (("train", "pieces.py:number"), USAGE, "number() returned int; need a bough.train.Run"),
    (("train", "pieces.py:breaks"), USAGE, "breaks() raised KeyError: 'gone' (*pieces.py, line 20, in breaks)"),
    (
        ("train", "grpo", "--policy", "./nowhere"),
        USAGE,
        "--policy: got './nowhere', which is no folder and no file; need a preset's name",
    ),
    (("train", "grpo", "--policy", "gpt2"), USAGE, "need a preset's name*a hub id (owner/name)"),
    (
        ("train", "grpo", "--policy", "done/finl"),
        USAGE,
        "in the folder 'done'*'done/finl@main'; did you mean 'done/final'?",
    ),
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
    (("resume", 300 * "x"), USAGE, f"error: cannot use {300 * 'x'}/config.json: file name too long; check the path"),
    (("resume", "nowhere"), FAILED, "nowhere: got a folder that does not exist; need one that `bough train` made"),
    (("eval", "nowhere"), FAILED, "nowhere: got a folder that does not exist; need one that `bough train` made"),
    (("export", "nowhere", "--out", "out.jsonl"), FAILED, "nowhere: got a folder that does not exist; need one that"),
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
    (f"steps={DEEP}", "steps: got '[[[["),
    (f"steps={300 * '9'}", "Schedule.steps: got 9999*; need at most 1,000,000,000"),
    ("steps=1e400", "steps: got inf; need a finite number"),
    (f"credit={DEEP}", "credit: got '[[[["),
    (f"credit={1000 * 'Grpo('}", "credit: got 'Grpo(Grpo("),
    ("threads=100000", "Execution.threads: got 100000; need 0 to 1024"),
    ("threads=-1", "Execution.threads: got -1; need 0 to 1024"),
    ("policy.width=1000000000", "Tiny: got layers=*width=1000000000*need at most 1e+09 and 1000 layers"),
    ("policy.layers=10000000", "Tiny: got layers=10000000*need at most 1e+09 and 1000 layers"),
    ("policy.vocab_tokens=1000000000", "Tiny: got*vocab_tokens=1000000000*need at most"),
    ("policy.vocab_tokens=1", "Tiny.vocab_tokens: got 1; need at least 260"),
    ("explorer.n=1000000000", "explorer: got 1,000,000,000 episodes a task*need at most 1,000,000 episodes in a batch"),
    ("tasks.count=1000000000", "Tasks.count: got 1,000,000,000; need at most 10,000,000"),
    ("batch_tasks=1e9", "batch_tasks=1000000000 is larger than tasks.count=2000"),
    ("name=..", "Run.name: got '..'; need a name that can be a folder's"),
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
    ("steps=-1", "Schedule.steps: got -1; need at least 0"),
    ("steps=true", "steps: got True; need a number"),
    ("batch_tasks=0", "Schedule.batch_tasks: got 0; need at least 1"),
    ("batch_tasks=5000", "batch_tasks=5000 is larger than tasks.count=2000; lower batch_tasks, or raise tasks.count"),
    ("name=", "Run.name: got ''; need a name that can be a folder's"),
    ("name=a/b", "Run.name: got 'a/b'; need a name that can be a folder's"),
    ("name=a\nb", "Run.name: got 'a\\nb'; need a name that can be a folder's: without '/', line breaks"),
    ("name=a\x1b[2Jb", "Run.name: got 'a\\x1b[2Jb'; need a name that can be a folder's"),
    (f"name={128 * 'é'}", "Run.name: got 256 bytes, 'éééééééééééééééééééé'...; need at most 255"),
    ("name=" + 300 * "x", "Run.name: got 300 bytes, 'xxxxx*; need at most 255, the longest name of a folder"),
    ("name.first=x", "name.first: name is 'grpo_frozenlake', which has no fields; need name=VALUE"),
    ("optimizer.learning_rate=nan", "optimizer.learning_rate: got nan; need a number"),
    ("optimizer.learning_rate=inf", "Optimizer.learning_rate: got inf; need a finite number"),
    ("optimizer.learning_rate=-1", "Optimizer.learning_rate: got -1.0; need a finite number above 0"),
    ("optimizer.learning_rate=1e-4x", "optimizer.learning_rate: got '1e-4x'; need a valid number"),
    ("optimizer.betas=3", "optimizer.betas: got 3; need a valid tuple"),
    ("optimizer.betas=[0.9,2]", "Optimizer.betas: got (0.9, 2.0); need two numbers from 0 to below 1"),
    ("credit=Grop", "credit: unknown name 'Grop'; did you mean 'Grpo'?"),
    ("credit=Grbo", "credit: unknown name 'Grbo'; did you mean 'Grpo'?"),
    ("credit=grpo", "credit: unknown name 'grpo'; did you mean 'Grpo'?"),
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
    ("explorer.n=0", "explorer.n: Chains.n: got 0; need at least 1"),
    ("rewards=EnvReward", "rewards: got EnvReward; need several pieces, as in [Name, Name(field=value)]"),
    ("rewards.4=Success", "rewards.4: got '4'; need a number from 0 to 0"),
    ("rewards=[EnvReward, Sucess]", "rewards.1: unknown name 'Sucess'; did you mean 'Success'?"),
    ("objective=PpoClip(low=-1)", "PpoClip.low: got -1.0; need a number from 0 to below 1"),
    ("env=3", "env: got 3; need a piece, written as Name or Name(field=value)"),
    ("env.size=1", "FrozenLake.size: got 1; need 2 or more"),
    ("sampling.temperature=0", "World.sampling.temperature: got 0; need more than 0"),
    ("sampling.max_tokens=0", "Sampling.max_tokens: got 0; need at least 1"),
    ("evaluation.every=-1", "Evaluation.every: got -1; need 0 (none) or more"),
    ("limits.engine_deadline_s=0", "Limits.engine_deadline_s: got 0.0; need more than 0 seconds"),
    ("limits.turns=0", "Limits.turns: got 0; need at least 1"),
    ("health.gap=0", "Health.gap: got 0.0; need a number above 0"),
    ("staleness=9", "Execution.staleness: got 9; need 0 to 8"),
]

OTHER_COMMANDS = [
    (("serve", "nowhere"), USAGE, "got 'nowhere', which is no folder and no file; need a run directory"),
    (("chat", "nowhere"), USAGE, "nowhere"),
    (("rewards", "nowhere"), FAILED, "nowhere"),
    (("report", "nowhere"), FAILED, "nowhere"),
    (("measure", "nowhere"), FAILED, "nowhere"),
    (("plan", "nowhere", "--cluster", "gone.toml"), USAGE, "--cluster: got gone.toml"),
    (("check-env", "nowhere"), USAGE, "nowhere"),
    (("check-env", "FrozenLake(size=1)"), USAGE, "FrozenLake.size: got 1; need 2 or more"),
]

SEEN_WHEN_BUILT = [
    ((RUN, "objective=pieces.py:Plain(returned=tensor)"), USAGE, "objective=Plain: got a tensor*need a Loss"),
    ((RUN, "objective=pieces.py:Plain(returned=tokens)"), USAGE, "objective=Plain: got a Loss with a tensor of shape"),
    ((RUN, "objective=pieces.py:Plain(returned=metric)"), USAGE, "as metric 'many'; need one number"),
    ((RUN, "objective=pieces.py:Plain(returned=detached)"), USAGE, "objective=Plain: got a Loss*no gradient"),
    ((RUN, "rewards=[pieces.py:Huge()]"), USAGE, "channels['huge']: got 1e+308 at node 0; need at most 1e+30"),
    (("pieces.py:tools", "tasks.count=1000"), USAGE, "got count=1000 for split 'train'*Set tasks.count="),
    (
        ("pieces.py:tools(reward=unpaid)", "evaluation.tasks.count=3"),
        FAILED,
        "got None from the reward function unpaid (*pieces.py, line *); need a finite number",
    ),
    ((RUN, "rewards=[EnvReward, EnvReward]"), USAGE, "got EnvReward twice*the channel 'env'; need*remove one"),
    ((RUN, "explorer.n=1"), USAGE, "explorer=Chains: got 1 path a task and credit=Grpo*set explorer.n=2"),
    ((RUN, "evaluation.tasks.split=train"), USAGE, "evaluation.tasks: got 6 of 6 tasks that are trained on*need"),
    (
        (RUN, "tasks.file=gone.jsonl"),
        USAGE,
        "tasks.file: cannot read gone.jsonl: no such file*; need a file",
    ),
    (
        (RUN, "tasks.file=broken.jsonl"),
        USAGE,
        'tasks.file: broken.jsonl, line 2: got *no JSON*; need one task, such as {"id": "lake-1"',
    ),
    ((RUN, "evaluation.tasks.file=empty"), USAGE, "evaluation.tasks.file: cannot read empty: is a directory; need a"),
    ((RUN, "tasks.file=bytes.jsonl"), USAGE, "tasks.file: bytes.jsonl, line 1: got no UTF-8 (invalid start byte 0xff)"),
    ((RUN, *LAKES, "tasks.count=5"), USAGE, "lakes.jsonl: got 2 tasks; need 5"),
    (
        (RUN, "tasks.file=wrong.jsonl", "tasks.count=1", "batch_tasks=1"),
        USAGE,
        "FrozenLake: task one got*FX*letters 'SFHG'",
    ),
    ((RUN, *LAKES, "steps=0"), USAGE, "evaluation.tasks: got 2 of 2 tasks that are trained on, such as 'one'; need"),
    ((RUN, *LAKES), USAGE, "evaluation.tasks: got 2 of 2 tasks that are trained on, such as 'one'; need"),
    (
        (RUN, "env.size=2", "tasks.count=1", "batch_tasks=1", "warmup.demonstrations=0", "evaluation.tasks.count=500"),
        USAGE,
        "evaluation.tasks: FrozenLake.tasks: got count=500 for split 'test'",
    ),
    ((RUN, "tasks.count=500", "env.size=2"), USAGE, "FrozenLake.tasks: got count=500*need a smaller count"),
    ((RUN, "warmup.demonstrations=13"), USAGE, "warmup.demonstrations: got 13; need at most tasks.count"),
    (
        (RUN, "policy.context_tokens=24"),
        USAGE,
        "got a first prompt of *need fewer than the 24*Shorten the instructions",
    ),
    ((RUN, "engine.context_tokens=24"), USAGE, "need fewer than the 24"),
    (
        (RUN, "policy=Pretrained(path=empty)"),
        USAGE,
        "Pretrained.path: got no config in 'empty'; need config.json",
    ),
    (
        (RUN, "policy=Pretrained(path=org/name)"),
        USAGE,
        "got 'org/name', taken for the hub id of a model*OFFLINE is set*do*: hf download org/name",
    ),
    (
        (RUN, "credit=pieces.py:Fewer()"),
        USAGE,
        "credit=Fewer: got 1 trees for 2; need one Credited for each",
    ),
    ((RUN, "credit=pieces.py:Turned()"), USAGE, "credit=Turned: got another tree at place 0*in their order"),
    ((RUN, "rewards=[pieces.py:Raises()]"), FAILED, "KeyError: 'bonus' (*pieces.py, line 30, in __call__)"),
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
        "RuntimeError: the counter is stuck (*pieces.py, line 78, in step)",
    ),
    (
        ("pieces.py:world", "env.broken=reward"),
        FAILED,
        "Count.step: got Step.reward = 'much' of type str; need a finite",
    ),
    (("pieces.py:world", "env.broken=later"), FAILED, "Count.step: got None of type NoneType; need a Step"),
    (
        ("pieces.py:world", "env.broken=no task"),
        USAGE,
        "Count.tasks('train', 12, ...): got 'x' of type str; need a list",
    ),
    (
        ("pieces.py:world", "env.broken=twins"),
        USAGE,
        "got 12 tasks with 1 different ids; need 12 of each; for fewer set tasks.count=1 (evaluation.tasks.count",
    ),
    (
        ("pieces.py:world", "warmup.demonstrations=2"),
        USAGE,
        "needs an environment with an oracle; got env=Count*`plan(state)`, or warmup.demonstrations=0",
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
    (tmp_path / "missing.py").write_text("import nothing_of_the_kind\n")
    (tmp_path / "other.py").write_text("from bough.credit import Grpo\ndef make():\n    return 3\n")
    lakes = [
        f'{{"id": "{name}", "data": {{"rows": ["SF", "FG"]}}, "seed": {len(name)}}}\n' for name in ("one", "three")
    ]
    (tmp_path / "lakes.jsonl").write_text("".join(lakes))
    (tmp_path / "wrong.jsonl").write_text(lakes[0].replace("FG", "FX"))
    (tmp_path / "broken.jsonl").write_text(lakes[0] + '{"id": "two", "data": {"rows": \n')
    (tmp_path / "bytes.jsonl").write_bytes(b'{"id": "on\xff"}\n')
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


BAD = [
    *((arguments, status, told, True) for arguments, status, told in SEEN_AT_ONCE),
    *((("train", FROZENLAKE, change), USAGE, told, True) for change, told in CHANGES),
    *((*bad, False) for bad in OTHER_COMMANDS),
    *((("train", *arguments), status, told, False) for arguments, status, told in SEEN_WHEN_BUILT),
]


@pytest.mark.parametrize(("arguments", "status", "told", "at_once"), BAD)
def test_a_bad_input(
    fresh: Bough, bough: Bough, project: Path, arguments: tuple[str, ...], status: int, told: str, at_once: bool
) -> None:
    """A mistake that settings show is reported before torch is imported, which takes longer than all the rest."""
    refused(fresh if at_once else bough, project, arguments, status, told)
    assert not fresh.imported("torch")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("trian", FROZENLAKE), "No such command 'trian'. Did you mean 'train'?"),
        (("train",), "got no METHOD; need a method"),
        (("check-env", "frozenlake", "--only", "luck"), "Invalid value for '--only'"),
        (("eval", "nowhere", "--step", "x"), "Invalid value for '--step'"),
    ],
)
def test_commands_and_options(bough: Bough, tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    said = bough(*arguments, folder=tmp_path)
    assert said.status == USAGE
    assert told in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("arguments", "module", "told"),
    [
        (("grpo_textworld", *ONE_STEP), "textworld", "pip install 'bough-rl[textworld]'"),
        ((RUN, *ONE_STEP, "policy=Pretrained(path=model,lora=Lora)"), "peft", "pip install 'bough-rl[lora]'"),
    ],
)
def test_a_missing_extra(bough: Bough, tmp_path: Path, arguments: tuple[str, ...], module: str, told: str) -> None:
    folders.folder(tmp_path / "model")
    assert told in bough("train", *arguments, folder=tmp_path, missing=[module]).error(USAGE)
    assert not list((tmp_path / "runs").iterdir())


def test_a_model_that_cannot_be_used(bough: Bough, tmp_path: Path) -> None:
    ask, model = ("train", RUN, "policy=Pretrained(path=model)"), tmp_path / "model"
    folders.folder(model)
    plain = [mark for mark in folders.SPECIAL if mark not in ("<|im_end|>", "<|im_start|>")]
    folders.tokenizer(folders.CHATML, special=plain).save_pretrained(model)
    error = bough(*ask, folder=tmp_path).error(USAGE)
    assert "Pretrained 'model': got a chat template that ends an assistant's message with '<|im_end|>" in error
    assert "need one that ends the turn" in error
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert "can't read the model at 'model'" in bough(*ask, folder=tmp_path).error(USAGE)


def test_a_run_that_is_there(bough: Bough, project: Path) -> None:
    ask = ("train", RUN, *ONE_STEP, *LAKES[:2], *LAKES[4:])
    bough(*ask, folder=project).fine()
    before = {path: path.read_bytes() for path in (project / "runs").rglob("*") if path.is_file()}
    error = bough(*ask, folder=project).error(FAILED)
    assert "run directory runs/small exists and holds a run at step 1" in error
    assert "choose another name=..., or continue it with `bough resume runs/small`" in error
    assert {path: path.read_bytes() for path in (project / "runs").rglob("*") if path.is_file()} == before
    run = project / "runs" / "small"
    (run / "heldout" / "step_000001.json").write_text("{")
    assert "heldout/step_000001.json: got no JSON" in bough("resume", str(run), "steps=2", folder=project).error(FAILED)
    assert (run / "metrics.jsonl").read_bytes() == before[run / "metrics.jsonl"], "before the first step"
