"""Spans of a run: a tree, its episodes, their calls."""

import json
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.missing import need
from tests.small import MEASURED
from tests.small import run as small

from bough.explore import Chains
from bough.store import RunDirectory, read_metrics
from bough.tracing import OpenTelemetry
from bough.tracing.tracer import episode_of
from bough.train import Evaluation, Run, Tasks, Warmup, start


def two_steps() -> Run:
    run = small()
    return run.replace(
        name="traced",
        steps=2,
        batch_tasks=1,
        explorer=Chains(n=2),
        evaluation=Evaluation(tasks=Tasks(split="test", count=1), every=2),
        warmup=Warmup(demonstrations=1, epochs=1),
    )


def spans_of(directory: RunDirectory) -> list[dict[str, Any]]:
    return [json.loads(line) for line in directory.traces.read_text().splitlines()]


def rows_of(directory: RunDirectory) -> list[dict[str, object]]:
    rows = read_metrics(directory.metrics)
    return [{name: value for name, value in row.items() if not name.startswith(MEASURED)} for row in rows]


@pytest.mark.parametrize(
    ("owner", "episode"),
    [
        ("task a branch root", ""),
        ("task a branch 3", "3"),
        ("task a branch 3.0.0", "3"),
        ("task a branch 0.0", "0"),
        ("task a branch 0.2.0", "0.2"),
        ("task a branch 1.-1.-1.0", "1"),
        ("task a branch 1.-3.0", "1.-3"),
        ("task branch 7 episode 12", "12"),
        ("weight sync", ""),
    ],
)
def test_the_turns_of_an_episode_have_one_name(owner: str, episode: str) -> None:
    assert episode_of(owner) == episode


def test_an_endpoint_needs_the_exporter_that_uses_it() -> None:
    with pytest.raises(ValueError, match="got 'http://a' with exporter='file'; need exporter='otlp'"):
        OpenTelemetry(exporter="file", endpoint="http://a")


def test_a_run_has_spans_and_the_same_results(tmp_path: Path) -> None:
    need("opentelemetry.sdk.trace")
    plain = start(two_steps(), tmp_path / "plain", terminal=False)
    assert not plain.traces.exists()
    directory = start(two_steps().replace(tracing=OpenTelemetry(exporter="file")), tmp_path, terminal=False)
    assert rows_of(directory) == rows_of(plain)

    spans = spans_of(directory)
    kinds = Counter(span["attributes"]["gen_ai.operation.name"] for span in spans)
    by_id = {span["context"]["span_id"]: span for span in spans}
    assert len(by_id) == len(spans)
    above = {"invoke_agent": "invoke_workflow", "chat": "invoke_agent", "execute_tool": "invoke_agent"}
    for span in spans:
        kind = span["attributes"]["gen_ai.operation.name"]
        parent = by_id.get(span["parent_id"])
        assert above.get(kind) == (parent and parent["attributes"]["gen_ai.operation.name"]), span
        if parent:
            assert parent["start_time"] <= span["start_time"] <= span["end_time"] <= parent["end_time"]
    rows = read_metrics(directory.metrics)
    trees = [span["attributes"]["bough.episodes"] for span in spans if span["name"] == "invoke_workflow traced"]
    assert sorted(trees)[-2:] == [2, 2], "two steps of one task, two episodes each"
    calls = [span["attributes"] for span in spans if span["name"] == "chat Tiny"]
    assert len(calls) == kinds["chat"]
    assert kinds["chat"] >= kinds["invoke_agent"] >= sum(trees)
    assert all(call["gen_ai.usage.input_tokens"] > 0 for call in calls)
    assert all(call["gen_ai.response.finish_reasons"][0] in ("stop", "length") for call in calls)
    sampled = sum(float(row.get("speed/sampled_tokens", 0)) for row in rows)
    assert sum(call["gen_ai.usage.output_tokens"] for call in calls) > sampled > 0, "held-out episodes have spans too"
    (episode, *_) = (span for span in spans if span["name"] == "invoke_agent small")
    assert episode["attributes"]["bough.outcome"] in ("open", "terminated", "truncated")
    assert {span["name"] for span in spans if span["name"].startswith("execute")} == {"execute_tool small"}
    assert spans[0]["resource"]["attributes"]["bough.run"] == "traced"


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    got = list[bytes]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", got
    server.shutdown()
    server.server_close()


def open_spans(settings: OpenTelemetry, file: Path, said: list[str], *, fails: bool = False) -> None:
    with (
        settings.open(run="a", model="m", agent="w", file=file, notify=said.append) as tracer,
        tracer.span("chat m", {"gen_ai.operation.name": "chat"}),
    ):
        if fails:
            raise OSError("the engine broke")


def test_spans_are_sent_by_http(collector: tuple[str, list[bytes]], tmp_path: Path) -> None:
    need("opentelemetry.sdk.trace")
    url, got = collector
    said = list[str]()
    open_spans(OpenTelemetry(endpoint=url), tmp_path / "no", said)
    assert b"gen_ai.operation.name" in b"".join(got)
    assert said == []


def test_a_collector_that_is_gone_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("opentelemetry.sdk.trace")
    monkeypatch.setattr("bough.tracing.open_telemetry.FLUSH_MS", 200)
    said = list[str]()
    open_spans(OpenTelemetry(endpoint="http://127.0.0.1:9/v1/traces"), tmp_path / "no", said)
    assert 1 <= len(said) <= 2
    assert "spans could not be sent" in " ".join(said)


def test_an_error_is_in_its_span(tmp_path: Path) -> None:
    need("opentelemetry.sdk.trace")
    file = tmp_path / "traces.jsonl"
    with pytest.raises(OSError, match="the engine broke"):
        open_spans(OpenTelemetry(exporter="file"), file, [], fails=True)
    (span,) = map(json.loads, file.read_text().splitlines())
    assert span["attributes"]["error.type"] == "OSError"
    assert span["status"] == {"status_code": "ERROR", "description": "the engine broke"}
