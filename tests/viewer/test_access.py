"""Who may ask the viewer, and what its answers allow a page."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from bough.viewer.runs import Runs
from bough.viewer.server import COOKIE, viewer_app

LOCAL, FAR = "http://127.0.0.1:8800", "http://10.0.0.1"


def client(folder: Path, base: str = LOCAL, **settings: Any) -> TestClient:
    return TestClient(viewer_app(Runs([folder]), folder / "branches", None, **settings), base_url=base)


def test_the_right_token_is_kept_in_a_cookie_and_a_wrong_one_gets_none(tmp_path: Path) -> None:
    visitor = client(tmp_path, FAR, token="secret", local=False)
    for wrong in ("/api/runs", "/?token=other", "/?token=secre", "/?token=", "/web/app.js", "/?token=%C3%A9"):
        answer = visitor.get(wrong)
        assert answer.status_code == 401, wrong
        assert "set-cookie" not in answer.headers, wrong
        assert "secret" not in answer.text
    visitor.cookies.set(COOKIE, "other")
    assert visitor.get("/api/runs").status_code == 401
    visitor.cookies.clear()
    given = visitor.get("/?token=secret")
    assert given.status_code == 200
    assert {"HttpOnly", "SameSite=Strict"} <= {*given.headers["set-cookie"].split("; ")}
    assert visitor.get("/api/runs").status_code == 200, "the cookie suffices from then on"
    assert visitor.get("/api/runs?token=other").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil.example:80"])
def test_another_host_is_refused_on_loopback(host: str, tmp_path: Path) -> None:
    assert client(tmp_path).get("/api/runs", headers={"host": host}).status_code == 403
    assert client(tmp_path, token="t").get("/?token=t", headers={"host": host}).status_code == 403
    assert client(tmp_path, FAR, local=False).get("/api/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1:8800", "localhost:8800", "[::1]:8800"])
def test_loopback_is_answered(host: str, tmp_path: Path) -> None:
    assert client(tmp_path).get("/api/runs", headers={"host": host}).json() == {"runs": []}


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
def test_a_form_of_another_page_is_refused(kind: str, tmp_path: Path) -> None:
    for name in ("branch", "score", "save"):
        address = f"/api/run/none/tree/1.0/{name}"
        assert client(tmp_path).post(address, content="{}", headers={"content-type": kind}).status_code == 415
        good = client(tmp_path).post(address, content="{}", headers={"content-type": "application/json; charset=utf-8"})
        assert good.status_code == 400
        assert client(tmp_path).get(address).status_code in (404, 405)


def test_every_answer_forbids_foreign_scripts(tmp_path: Path) -> None:
    mine = client(tmp_path, token="t")
    answers = [
        mine.get("/api/runs"),
        mine.get("/?token=t"),
        mine.get("/web/app.js"),
        mine.get("/api/nothing"),
        mine.get("/api/run/none"),
        mine.post("/api/run/none/tree/1.0/save"),
        mine.get("/", headers={"host": "evil.example"}),
    ]
    assert [each.status_code for each in answers] == [401, 200, 200, 404, 400, 415, 403]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_body_is_small_json(tmp_path: Path) -> None:
    for body, problem in (
        ("{", "no JSON"),
        ("[]", "not an object"),
        ("[" * 100_000, "no JSON"),
        (" " * 2**21, "bytes"),
    ):
        answer = client(tmp_path).post(
            "/api/run/none/tree/1.0/save", content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400
        assert problem in answer.json()["error"]
