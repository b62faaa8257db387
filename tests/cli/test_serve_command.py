"""`bough serve`: from a run directory or a model to an address."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from openai import OpenAI
from tests.talk import ENVIRONMENT, ONE_STEP, SMALL, Bough

from bough.cli.serve import serve_policy
from bough.config import ConfigError


@pytest.fixture(scope="module")
def trained(bough: Bough, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    bough("train", f"{SMALL}:run", *ONE_STEP, folder=folder).fine()
    return folder / "runs" / "small"


@pytest.mark.parametrize("part", ["", "final"])
def test_a_run_and_its_model_are_served(trained: Path, part: str) -> None:
    command = [sys.executable, "-m", "bough", "serve", str(trained / part), "--port", "0", "--key", "secret"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            word, name, _, url = server.stdout.readline().split()
            assert (word, name) == ("serving", part or "small")
            with OpenAI(base_url=url, api_key="secret", max_retries=0) as client:
                answer = client.chat.completions.create(
                    model=name, messages=[{"role": "user", "content": "hi"}], max_tokens=3
                )
            assert 1 <= answer.usage.completion_tokens <= 3  # type: ignore[union-attr]
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 130
        assert "Traceback" not in server.stderr.read()


def test_another_address_needs_a_key(bough: Bough, tmp_path: Path) -> None:
    assert "--key" in bough("serve", "runs/x", "--host", "0.0.0.0", folder=tmp_path).error(2)


def test_a_target_that_is_none(bough: Bough, tmp_path: Path) -> None:
    assert "run directory" in bough("serve", "nothing", folder=tmp_path).error(2)


def test_a_missing_extra(bough: Bough, tmp_path: Path) -> None:
    text = bough("serve", "runs/x", folder=tmp_path, missing=["uvicorn", "bough.serve.server"]).error(2)
    assert "pip install 'bough-rl[serve]'" in text


def test_the_key_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BOUGH_SERVE_KEY", "secret")
    with pytest.raises(ConfigError, match="run directory"):
        serve_policy(tmp_path / "none", host="0.0.0.0", port=0, key=None, step=None, ready=print, max_body_mib=1)
