"""The viewer's answers are what the files of a run hold, and it writes nothing into them."""

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from bough.cli.branch_player import BranchPlayer
from bough.credit import compute_credit, rloo
from bough.store import StoreError, read_conversations, read_metrics, read_trees
from bough.store.lock import owned
from bough.train.run_parts import RunParts
from bough.tree import Credited, Kind, Outcome, Ternary, Tree, counted, leaves, path, token_node, trained
from bough.viewer.metric_lines import MetricLines
from bough.viewer.runs import Runs
from bough.viewer.server import viewer_app

LOCAL = "http://127.0.0.1:8800"


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("branches")


@pytest.fixture(scope="module")
def client(run: Path, branches: Path) -> Iterator[TestClient]:
    player = BranchPlayer()
    yield TestClient(viewer_app(Runs([run.parent]), branches, player, parts=RunParts()), base_url=LOCAL)
    player.close()


def get(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def stored(run: Path, step: int) -> list[Credited]:
    return read_trees(run / "trees" / f"step_{step:06d}.safetensors", Credited)


def actions_to(tree: Tree, node: int) -> list[int]:
    walk = path(tree, node)
    return walk[tree.kind[walk] == Kind.ACTION].tolist()


def last_step(client: TestClient) -> int:
    return get(client, "/api/run/soko/trees")["steps"][-1]


def test_runs_are_listed_with_what_their_files_say(client: TestClient, run: Path) -> None:
    (row,) = get(client, "/api/runs")["runs"]
    metrics = read_metrics(run / "metrics.jsonl")
    assert (row["name"], row["world"], row["credit"], row["state"]) == ("soko", "sokoban", "Grpo", "done")
    assert row["step"] == metrics[-1]["step"]
    assert row["success"][-1][0] == metrics[-1]["heldout/success"]
    assert row["tokens"] == sum(each.get("speed/sampled_tokens", 0) for each in metrics)
    rows = get(client, "/api/run/soko/metrics")["rows"]
    assert [each["step"] for each in rows] == [each["step"] for each in metrics]
    settings = get(client, "/api/run/soko")["settings"]
    assert settings["world.schedule.batch_tasks"] == "3"
    assert settings["method.credit"] == "Grpo"


def test_damaged_runs_are_rows_with_a_reason(run: Path, tmp_path: Path) -> None:
    for name in ("config", "metrics", "training"):
        shutil.copytree(run, tmp_path / name)
    (tmp_path / "config" / "config.json").write_text("{")
    for number, wrong in enumerate(
        ("[]", "{}", '{"world": 5}', '{"world": {"name": "x", "policy": "y"}, "method": {}}')
    ):
        (tmp_path / f"other{number}").mkdir()
        (tmp_path / f"other{number}" / "config.json").write_text(wrong)
    lines = (tmp_path / "metrics" / "metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "metrics" / "metrics.jsonl").write_text("".join([lines[0], "nonsense\n", *lines[1:]]))
    shutil.rmtree(tmp_path / "training" / "final")
    (tmp_path / "training" / "status.json").write_text('{"state": "training", "why": "", "at": ""}')
    client = TestClient(viewer_app(Runs([tmp_path]), tmp_path / "b", None), base_url=LOCAL)
    rows = {row["name"]: row for row in get(client, "/api/runs")["runs"]}
    for name in ("config", "other0", "other1", "other2", "other3"):
        assert "config.json: got" in rows[name]["damaged"]
        for part in ("", "/health"):
            answer = client.get(f"/api/run/{name}{part}")
            assert answer.status_code == 400
            assert "config.json: got" in answer.json()["error"]
    assert "line 2: got a damaged line" in rows["metrics"]["damaged"]
    assert rows["training"]["state"] == "crashed"
    assert "without a word" in rows["training"]["why"]
    with owned(tmp_path / "training" / "run.lock"):
        assert get(client, "/api/run/training")["state"] == "training"
    assert "line 2" in client.get("/api/run/metrics/metrics").json()["error"]


def test_metrics_are_read_on(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    lines = MetricLines(file)
    assert lines.read() == []
    rows = [{"step": step, "loss": step / 2} for step in range(200)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:150]))
    assert lines.read() == rows[:150]
    with file.open("a") as grown:
        grown.write("".join(json.dumps(row) + "\n" for row in rows[150:]) + '{"step": 200, "lo')
    assert lines.read() == rows, "an incomplete line is none"
    changed = [*rows[:-1], {**rows[-1], "heldout/success": 0.5}]
    file.write_text("".join(json.dumps(row) + "\n" for row in changed))
    assert lines.read() == changed, "the last line was amended"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:20]))
    assert lines.read() == rows[:20], "a resumed run has dropped lines"
    with file.open("r+b") as damaged:
        damaged.write(b"#")
    with file.open("a") as grown:
        grown.write(json.dumps(rows[20]) + "\n")
    assert lines.read() == rows[:21], "what is known is not read again"


@pytest.mark.parametrize("line", ["nonsense", "[1]", "{}", '{"step": null}', '{"step": "2"}', '{"step": true}'])
def test_a_damaged_line_is_named_until_it_is_mended(line: str, tmp_path: Path) -> None:
    file, rows = tmp_path / "metrics.jsonl", [{"step": step} for step in (1, 2)]
    lines = MetricLines(file)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert lines.read() == rows
    with file.open("a") as grown:
        grown.write(f"{line}\n")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"metrics\.jsonl, line 3: got a damaged line; need a JSON object with a"):
            lines.read()
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert lines.read() == rows


def test_a_tree_is_drawn_with_its_numbers(client: TestClient, run: Path) -> None:
    step = last_step(client)
    for index, credited in enumerate(stored(run, step)):
        tree = credited.tree
        drawn = get(client, f"/api/run/soko/tree/{step}.{index}")
        columns = drawn["columns"]
        assert drawn["task"] == tree.task.id
        assert drawn["solved"] == int((tree.success[counted(tree)] == Ternary.YES).sum())
        covered = [node for a, b in zip(columns["node"], columns["last"], strict=True) for node in range(a, b + 1)]
        assert covered == [*range(tree.nodes)], "each node is in one turn"
        assert sum(columns["tokens"]) == int(tree.sampled.sum())
        ends = [end for end, outcome in zip(columns["last"], columns["outcome"], strict=True) if outcome]
        assert ends == leaves(tree).tolist()
        of_node, advantage = token_node(tree), credited.advantage
        for at, (first, last) in enumerate(zip(columns["node"], columns["last"], strict=True)):
            chosen = trained(tree) & (of_node >= first) & (of_node <= last)
            expected = advantage[chosen].mean() if chosen.any() else None
            assert columns["advantage"][at] == (
                None if expected is None else pytest.approx(expected, rel=1e-3, abs=1e-6)
            )


def test_a_turn_has_its_conversation_prompt_and_tokens(client: TestClient, run: Path) -> None:
    step = last_step(client)
    credited = stored(run, step)[0]
    tree = credited.tree
    leaf = int(leaves(tree)[0])
    action = actions_to(tree, leaf)[-1]
    node = get(client, f"/api/run/soko/tree/{step}.0/node/{action}")
    assert node["tokens"]["id"] == tree.tokens_of(action).tolist()
    span = slice(int(tree.span[action]), int(tree.span[action + 1]))
    assert node["tokens"]["logprob"] == pytest.approx(tree.logprob[span].tolist(), rel=1e-3)
    said = [each["content"] for each in node["conversation"] if each["role"] == "assistant"]
    assert len(said) == len(actions_to(tree, action))
    assert "".join(text for text, _ in node["prompt"]).count("Push boxes") == 1
    assert sum(each["total"] for each in node["rewards"]) == pytest.approx(
        float(credited.rewarded.reward[path(tree, node["last"])].sum())
    )


def test_another_rule_changes_the_advantages_of_the_same_tree(client: TestClient, run: Path) -> None:
    step = last_step(client)
    trees = stored(run, step)
    index = next(at for at, each in enumerate(trees) if len({*each.rewarded.returns().tolist()}) > 1)
    other = compute_credit(rloo(), [each.rewarded for each in trees])[index]
    name = f"/api/run/soko/tree/{step}.{index}"
    columns = get(client, f"{name}?credit=rloo")["columns"]
    assert columns["advantage"] != get(client, name)["columns"]["advantage"]
    known = [each for each in columns["advantage"] if each is not None]
    assert max(known) == pytest.approx(float(other.advantage.max()), rel=1e-3)
    for wrong, problem in (("nothing", "need one of"), ("Gae", "needs"), ("file.py:Own", "need one of")):
        answer = client.get(f"{name}?credit={wrong}")
        assert answer.status_code == 400
        assert problem in answer.json()["error"]


def test_episodes_are_found(client: TestClient, run: Path) -> None:
    step = last_step(client)
    paths = get(client, f"/api/run/soko/step/{step}")["paths"]
    trees = stored(run, step)
    assert len(paths["tree"]) == sum(len(leaves(each.tree)) for each in trees)
    flags = get(client, "/api/run/soko/trees")["flags"]
    silent = {name for name, bit in zip(paths["tree"], paths["flags"], strict=True) if bit & flags["no signal"]}
    assert silent == {f"{step}.{at}" for at, each in enumerate(trees) if each.is_zero}
    hits = get(client, "/api/run/soko/search?words=PUSH%20boxes")
    assert hits["hits"][0]["match"] == "Push boxes"
    assert len(hits["hits"]) >= len(trees)
    held = get(client, "/api/run/soko/evaluations")
    newest = json.loads((run / "heldout" / f"step_{held['steps'][-1]:06d}.json").read_text())["tasks"]
    assert {name: row[-1] for name, row in held["tasks"].items()} == newest


def test_signs_of_health_out_of_bounds_come_first(client: TestClient) -> None:
    found = get(client, "/api/run/soko/health")
    assert found["signs"]
    wanting = [bool(sign["action"]) for sign in found["signs"]]
    assert wanting == sorted(wanting, reverse=True)
    entropy = next(sign for sign in found["signs"] if sign["title"] == "Entropy")
    assert len(entropy["values"]) == len(entropy["steps"]) == 2
    assert not entropy["action"]


def test_wrong_addresses_are_sentences(client: TestClient) -> None:
    for path_, part in (
        ("/api/run/none", "need one of soko"),
        ("/api/run/soko/tree/1.99", "trees"),
        ("/api/run/soko/tree/x", "need STEP.INDEX"),
        ("/api/run/soko/tree/77.0", "no stored trees"),
        ("/api/run/soko/search?words=", "empty text"),
    ):
        answer = client.get(path_)
        assert answer.status_code == 400, path_
        assert part in answer.json()["error"]
    assert client.get("/api/nothing").status_code == 404
    assert client.get("/web/../server.py").status_code == 404


def digests(folder: Path) -> dict[str, str]:
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    return {str(each.relative_to(folder)): sha256(each.read_bytes()).hexdigest() for each in files}


def test_a_failed_path_goes_on_beside_the_run(client: TestClient, run: Path, branches: Path) -> None:
    step = last_step(client)
    before = digests(run)
    tree, node = next(
        (f"{step}.{index}", int(each.tree.parent[actions_to(each.tree, leaf)[-1]]))
        for index, each in enumerate(stored(run, step))
        for leaf in leaves(each.tree)
        if each.tree.outcome[leaf] == Outcome.TRUNCATED and len(actions_to(each.tree, leaf)) > 1
    )
    base = f"/api/run/soko/tree/{tree}"
    made = client.post(f"{base}/branch", json={"at": str(node), "action": "left"})
    assert made.status_code == 200, made.text
    sampled = client.post(f"{base}/branch", json={"at": "0", "samples": 2, "seed": 5})
    assert sampled.json()["number"] == 1
    assert client.post(f"{base}/branch", json={"at": str(node), "action": "right"}).json()["number"] == 2
    typed, tried, other_way = get(client, f"{base}/branches")["branches"]
    assert typed["note"] == "", "all rewards of the run are paid"
    assert typed["columns"]["label"][0] == "left"
    assert typed["columns"]["parent"][0] == -1
    assert typed["columns"]["source"][0] == "teacher"
    assert [source for source in tried["columns"]["source"] if source == "sampled"]
    assert sum(parent == -1 for parent in tried["columns"]["parent"]) <= 2
    leaf = f"b0:{typed['columns']['last'][-1]}"
    saved = client.post(f"{base}/save", json={"kind": "demonstrations", "leaf": leaf, "learn": "new"}).json()
    assert saved["rows"] == 1
    row = json.loads(Path(saved["file"]).read_text())
    weights = [message.get("weight", 1) for message in row["messages"] if message["role"] == "assistant"]
    assert weights == [0] * (len(weights) - 1) + [1]
    (conversation,) = read_conversations(Path(saved["file"]))
    assert conversation.task
    assert branches in Path(saved["file"]).parents
    other = f"b2:{other_way['columns']['last'][-1]}"
    kept = client.post(f"{base}/save", json={"kind": "preferences", "chosen": leaf, "rejected": other})
    won, lost = read_conversations(Path(kept.json()["file"]))
    assert (won.success, lost.success) == (True, False)
    assert Path(kept.json()["file"]).parent == Path(saved["file"]).parent
    for wrong, part in (
        ({"at": str(node)}, "need an action"),
        ({"at": "b9:1", "action": "left"}, "got branch 9"),
        ({"at": "x", "action": "left"}, "need a number"),
        ({"at": str(node), "action": 3}, "type str"),
        ({"at": str(node), "samples": True}, "type int"),
    ):
        answer = client.post(f"{base}/branch", json=wrong)
        assert answer.status_code == 400
        assert part in answer.json()["error"]
    assert digests(run) == before, "the run's own files are as they were"


def test_the_checkpoint_that_sampled_a_token_gives_it_the_stored_probability(client: TestClient, run: Path) -> None:
    step = last_step(client)
    tree = stored(run, step)[0].tree
    action = actions_to(tree, int(leaves(tree)[0]))[-1]
    span = slice(int(tree.span[action]), int(tree.span[action + 1]))
    scores = [
        client.post(f"/api/run/soko/tree/{step}.0/score", json={"at": str(action), "step": checkpoint}).json()[
            "logprobs"
        ]
        for checkpoint in (step - 1, step)
    ]
    assert scores[0] == pytest.approx(tree.logprob[span].tolist(), rel=1e-3)
    assert scores[1] != pytest.approx(scores[0], rel=1e-6), "the update has changed it"


def test_branches_are_those_of_the_run_that_is_there(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "runs" / "soko")
    manifest = tmp_path / "runs" / "soko" / "manifest.json"
    runs = Runs([tmp_path / "runs"])
    before = runs.key("soko")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "created": "2031-01-01T00:00:00+00:00"}))
    assert before.startswith("soko-")
    assert runs.key("soko") == "soko-2031-01-01T00-00-00" != before


def test_tokens_without_a_tokenizer_are_numbers_and_the_reason_is_shown(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "soko")
    shutil.rmtree(tmp_path / "soko" / "policy")
    client = TestClient(viewer_app(Runs([tmp_path]), tmp_path / "b", None, parts=RunParts()), base_url=LOCAL)
    step = last_step(client)
    node = get(client, f"/api/run/soko/tree/{step}.0/node/1")
    assert node["undecoded"]
    assert node["tokens"]["text"] == [f" {token}" for token in node["tokens"]["id"]]
