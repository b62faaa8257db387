"""The endpoint for Prometheus."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from tests.missing import need
from tests.small import run as small

from bough.store import Endpoint, StoreError, read_metrics
from bough.train import start
from bough.tree import Floats, Tree

need("prometheus_client")
seen: list[str] = []


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def read(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return answer.read().decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """A reward of nothing, which reads the endpoint of its run."""

    port: int

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        seen.append(read(self.port))
        return [{} for _ in group]


def test_a_run_shows_its_newest_metrics_while_it_runs(tmp_path: Path) -> None:
    seen.clear()
    run, port = small(), free_port()
    run = run.replace(name="shown", steps=2, warmup=replace(run.world.warmup, epochs=1))
    directory = start(run.replace(metrics_port=port, rewards=(*run.world.rewards, Scrape(port=port))), tmp_path)
    *_, before, _ = read_metrics(directory.metrics)
    lines = seen[-1].splitlines()
    assert "# TYPE bough_train_success gauge" in lines
    assert f'bough_step{{metric="step",run="shown"}} {float(before["step"])}' in lines
    assert f'bough_train_success{{metric="train/success",run="shown"}} {before["train/success"]}' in lines
    assert any(line.startswith("bough_heldout_success{") for line in lines), "of an earlier step"
    with pytest.raises(URLError):
        read(port)


def test_metrics_whose_names_differ_by_a_sign_are_apart() -> None:
    port = free_port()
    with Endpoint("a", port) as endpoint:
        endpoint.update(3, {"reward/a-b": 1.5, "reward/a/b": 2, "phase": "rl", "none": float("nan")})
        found = [line for line in read(port).splitlines() if not line.startswith("#")]
        assert found == [
            'bough_reward_a_b{metric="reward/a-b",run="a"} 1.5',
            'bough_reward_a_b{metric="reward/a/b",run="a"} 2.0',
            'bough_step{metric="step",run="a"} 3.0',
        ]
        with pytest.raises(StoreError, match=f"metrics_port: got 127.0.0.1, port {port} .*set another metrics_port"):
            Endpoint("b", port)
