"""A whole run with tools of two MCP servers, one from the package index and one of ours, both killed in the middle."""

# ruff: noqa: ARG001

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.env.tools.mcp_http import end, free_port, serve, wait
from tests.small import world as small

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.env import McpHttp, McpStdio, call, tools_env
from bough.explore import Chains
from bough.policy import Tiny
from bough.store import read_metrics, read_trees
from bough.train import Checkpointing, Evaluation, Tasks, Warmup, start
from bough.tree import Credited, Outcome, counted, fault_in, leaves

TIME = ("-m", "mcp_server_time", "--local-timezone", "UTC")
TEN = {"source_timezone": "Asia/Tokyo", "time": "10:00", "target_timezone": "UTC"}
CHAINS, TASKS, STEPS = 3, 3, 2
interrupted: list[int] = []
counters: list[subprocess.Popen[bytes]] = []


def rows() -> list[dict[str, Any]]:
    return [{"prompt": f"Task {n}"} for n in range(100)]


def right(state: None, row: Mapping[str, Any], answer: str) -> bool:
    return answer == "01:00"


def plan(state: None, row: Mapping[str, Any]) -> list[object]:
    return [call(interrupt), call("convert_time", **TEN), call("add", amount=1), "01:00"]


def interrupt() -> str:
    """Kills a server now and then, before other calls of the episode."""
    interrupted.append(1)
    if len(interrupted) % 12 == 3:
        (server,) = filter(is_own_time_server, Path("/proc").glob("[0-9]*"))
        os.kill(int(server.name), signal.SIGKILL)
    elif len(interrupted) % 12 == 9:
        end(counters[-1])
        counters.append(serve(int(os.environ["COUNTER_PORT"])))
    return "ok"


def is_own_time_server(process: Path) -> bool:
    try:
        parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        return int(parent) == os.getpid() and "mcp_server_time" in (process / "cmdline").read_text()
    except OSError:
        return False


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    port = free_port()
    monkeypatch.setenv("COUNTER_PORT", str(port))
    counters.append(serve(port))
    wait(port)
    yield f"http://127.0.0.1:{port}/mcp"
    end(counters[-1])


def test_killed_servers_cost_no_episode_and_are_no_failure_of_the_policy(url: str, tmp_path: Path) -> None:
    servers = [McpStdio(command=sys.executable, args=TIME, stateless=True), McpHttp(url=url, stateless=True)]
    world = small().replace(
        env=tools_env(tools=[interrupt], servers=servers, tasks=rows, reward=right, plan=plan),
        policy=Tiny(layers=1, width=32, heads=2, vocab_tokens=1000, context_tokens=4096),
        parser=ToolCalls(),
        sampling=Sampling(max_tokens=96, temperature=0.4),  # at 1 one path of nine is right, with luck
        warmup=Warmup(demonstrations=12, epochs=16, learning_rate=1e-2, batch_tokens=2048),
        evaluation=Evaluation(tasks=Tasks(split="test", count=2), every=STEPS),
    )
    explorer, checkpointing = Chains(n=CHAINS, retries=4), Checkpointing(every=STEPS, trees_every=1)
    directory = start(world.run(explorer=explorer, steps=STEPS, checkpointing=checkpointing), tmp_path, terminal=False)
    faults: list[str] = []
    metrics = [row for row in read_metrics(directory.metrics) if "train/paths" in row]
    assert len(metrics) == STEPS
    for row in metrics:
        trees = [each.tree for each in read_trees(directory.trees_of(row["step"]), Credited)]
        assert len(trees) == TASKS
        assert [len(counted(tree)) for tree in trees] == [CHAINS] * TASKS, "no episode is lost"
        assert row["train/paths"] == TASKS * CHAINS
        solved = [bool(tree.success[leaf] == 1) for tree in trees for leaf in counted(tree)]
        assert row["train/success"] == pytest.approx(sum(solved) / len(solved))
        assert not any(fault_in(tree.info[leaf]) for tree in trees for leaf in counted(tree))
        failed = [(tree, leaf) for tree in trees for leaf in leaves(tree) if tree.outcome[leaf] == Outcome.FAILED]
        assert row["paths/failed"] == len(failed)
        faults += [fault_in(tree.info[leaf]) or "" for tree, leaf in failed]
    assert any("mcp_server_time" in fault for fault in faults)
    assert any(url in fault for fault in faults)
    assert {fault.partition(" ")[0] for fault in faults} == {"MCP"}
    assert max(row["train/success"] for row in metrics) > 0, "the policy calls the tools"
