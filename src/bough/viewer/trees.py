"""The routes of trees, episodes and searches under `/api/run/NAME`."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bough.store import Checkpoints, StoreError
from bough.store.atomic import stored_object
from bough.viewer.branches import FILES, Place, RunBranches
from bough.viewer.player import Moves, Player
from bough.viewer.runs import Runs
from bough.viewer.stored_trees import TreeName
from bough.viewer.text_search import search_texts
from bough.viewer.tree_answers import Answer, TreeAnswers
from bough.viewer.tree_branches import TreeBranches

Body: TypeAlias = dict[str, Any]

MOST_BODY = 2**20
"""Bytes of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRoutes:
    """The answers about trees, and new branches from them.

    Attributes:
        runs: The runs.
        folder: Folder of the branches; a run has one of its own in it, by its key.
        player: Goes on from turns; None where nothing is played.
        answers: The answers about trees.
    """

    runs: Runs
    folder: Path
    player: Player | None
    answers: TreeAnswers

    def routes(self) -> list[Route]:
        """The routes."""
        run, tree = "/api/run/{run}", "/api/run/{run}/tree/{tree}"
        read: dict[str, Callable[[Request], Answer]] = {
            f"{run}/trees": lambda request: self.answers.trees(self._directory(request)),
            f"{run}/step/{{step:int}}": lambda request: self.answers.step(
                self._directory(request), int(request.path_params["step"])
            ),
            f"{run}/search": self._search,
            tree: lambda request: self.answers.tree(self._directory(request), _name(request), _rule(request)),
            f"{tree}/branches": self._branches,
            f"{tree}/node/{{place}}": lambda request: self.answers.node(
                self._directory(request), _name(request), _place(request), self._of(request), _rule(request)
            ),
            f"{tree}/state/{{place}}": lambda request: self.answers.state(
                self._directory(request), _name(request), _place(request), self._of(request)
            ),
        }
        write: dict[str, Callable[[Request, Body], Answer]] = {
            f"{tree}/branch": self._branch,
            f"{tree}/score": self._score,
            f"{tree}/save": self._save,
        }
        return [
            *(Route(path, reads(answer)) for path, answer in read.items()),
            *(Route(path, _writes(answer), methods=["POST"]) for path, answer in write.items()),
        ]

    def _directory(self, request: Request) -> Path:
        return self.runs.directory(run_in(request))

    def _of(self, request: Request) -> RunBranches:
        return RunBranches(folder=self.folder / self.runs.key(run_in(request)))

    def _search(self, request: Request) -> Answer:
        hits, more = search_texts(self._directory(request), request.query_params.get("words", ""))
        return {"hits": hits, "more": more}

    def _branches(self, request: Request) -> Answer:
        directory, branches = self._directory(request), self._of(request).of(_name(request))
        return {
            "playable": self.player is not None,
            "checkpoints": Checkpoints(directory=directory / "checkpoints").steps(),
            "branches": [branches.drawn(number) for number in branches.numbers()],
        }

    def _branch(self, request: Request, body: Body) -> Answer:
        moves = Moves(
            action=_typed(body, "action", str, ""),
            samples=_typed(body, "samples", int, 0),
            step=_typed(body, "step", int, None),
            seed=_typed(body, "seed", int, 0),
        )
        return {"number": self._tree(request).play(Place.read(body.get("at")), moves)[0]}

    def _score(self, request: Request, body: Body) -> Answer:
        at = Place.read(body.get("at"))
        scored = self._playing().score(
            self._directory(request), self._tree(request).credited(at).tree, at.node, _typed(body, "step", int, None)
        )
        return {"logprobs": [*scored.logprobs], "step": scored.step}

    def _save(self, request: Request, body: Body) -> Answer:
        kind, tree = _typed(body, "kind", str, ""), self._tree(request)
        if kind == "demonstrations":
            saved = tree.save_demonstration(Place.read(body.get("leaf")), new_turns=body.get("learn") == "new")
        elif kind == "preferences":
            saved = tree.save_preference(*(Place.read(body.get(side)) for side in ("chosen", "rejected")))
        else:
            raise StoreError(f"got the kind {kind!r:.40}; need one of {', '.join(FILES)}")
        return asdict(saved)

    def _tree(self, request: Request) -> TreeBranches:
        return TreeBranches(
            directory=self._directory(request),
            name=_name(request),
            world=self.runs.setting(run_in(request), "world", "name"),
            kept=self._of(request),
            answers=self.answers,
            player=self._playing(),
        )

    def _playing(self) -> Player:
        if self.player is None:
            raise StoreError("got a viewer that plays nothing; need `bough view` on the machine of the run")
        return self.player


def reads(answer: Callable[[Request], Mapping[str, object]]) -> Callable[[Request], JSONResponse]:
    """The endpoint of an answer in JSON."""

    # Starlette runs it in a thread.
    def respond(request: Request) -> JSONResponse:
        return JSONResponse(answer(request))

    return respond


def _writes(answer: Callable[[Request, Body], Answer]) -> Callable[[Request], Any]:
    async def respond(request: Request) -> JSONResponse:
        raw = b""
        async for part in request.stream():
            raw += part
            if len(raw) > MOST_BODY:
                raise StoreError(f"got a request of more than {MOST_BODY} bytes; need less")
        return JSONResponse(await run_in_threadpool(answer, request, stored_object(raw)))

    return respond


def run_in(request: Request) -> str:
    """The name of the run in an address."""
    return str(request.path_params["run"])


def _name(request: Request) -> TreeName:
    return TreeName.read(request.path_params["tree"])


def _place(request: Request) -> Place:
    return Place.read(request.path_params["place"])


def _rule(request: Request) -> str:
    return request.query_params.get("credit", "")


def _typed(body: Body, name: str, kind: type, default: Any) -> Any:
    """A value of a request.

    Raises:
        StoreError: when it has another type.
    """
    value = body.get(name, default)
    if value is not default and (not isinstance(value, kind) or isinstance(value, bool)) and value is not None:
        raise StoreError(f"got {name}={value!r:.60}; need a value of type {kind.__name__}")
    return default if value is None else value
