"""Environments over HTTP, as AgentGym serves them."""

import json
import urllib.request
import weakref
from collections.abc import Mapping
from dataclasses import field, fields
from functools import partial
from http.client import HTTPException
from random import Random
from threading import Lock
from typing import Annotated, Any, ClassVar, cast
from urllib.parse import urlencode

from bough.env.adapters.http_request import body_of
from bough.env.adapters.outside import Live, Position, object_field, reward_and_done
from bough.env.adapters.outside_checks import Url
from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.splits import split_of
from bough.launch import in_background
from bough.launch.background import in_event_loop
from bough.piece import Above, AtLeast, piece
from bough.tree import Outcome, Task


@piece
class HttpEnv:
    """An environment on a server with AgentGym's paths (arXiv 2406.04151): create, observation, step, reset and close.

    Each episode has an id of its own on the server. It is closed at its end, or when no state of it is left. A task is
    an item of the server's data set, by its number. Wrap it in `Replay` for branching if the server is deterministic.

    Attributes:
        url: The server's address with the path of the environment, `http://host:8000/webshop`.
        items: Number of items of the data set.
        id_field: The field with an episode's id.
        item_field: The field of `reset` with the item's number.
        observation_field: The field of a reply of `step` with the observation.
        instructions: The rules.
        max_steps: Maximum number of actions.
        success_at: Least reward of the last action for success.
        deadline_s: Deadline of each request, up to the last byte of the reply.

    Raises:
        ValueError: when a number is out of its range, or `url` is no address.
    """

    waits: ClassVar[bool] = True

    url: Annotated[str, Url("http", "https")]
    items: Annotated[int, AtLeast(1)]
    id_field: str = "id"
    item_field: str = "data_idx"
    observation_field: str = "observation"
    instructions: str = ""
    max_steps: Annotated[int, AtLeast(1)] = 50
    success_at: float = 1.0
    deadline_s: Annotated[float, Above(0)] = 60.0
    _open: "weakref.WeakSet[Live]" = field(default_factory=weakref.WeakSet[Live], init=False, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)
    branching = Branching.NONE  # an episode has one present state

    def __reduce__(self) -> "tuple[Any, ...]":
        # A copy has no open episodes.
        return _made, ({name: getattr(self, name) for name in _SETTINGS},)

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` items of a split; a hash of the number decides the split.

        Raises:
            ValueError: when the split has fewer.
        """
        own = [item for item in range(self.items) if split_of(f"{self.url} {item}") == split]
        if not 0 <= count <= len(own):
            raise ValueError(f"HttpEnv.tasks: got count={count}; need 0 to {len(own)}, the items of split {split!r}")
        return [Task(id=f"item-{item}", data={"item": item}) for item in Random(f"http {seed}").sample(own, count)]

    def start(self, task: Task) -> State:
        """Creates an episode and resets it to the task's item.

        Raises:
            EnvFault: when the server does not answer, or answers with an error.
            ValueError: when the task has no item.
        """
        item = task.data.get("item")
        if not isinstance(item, int):
            raise ValueError(f"HttpEnv: task {task.id} got the item {item!r}; need data={{'item': INTEGER}}")
        identity = self._identity(self._send("create", {}))
        live = Live(identity, self._forget)
        with self._lock:
            self._open.add(live)
        reply = self._send("reset", {self.id_field: identity, self.item_field: item})
        found = self._text(reply)
        if found is None:
            found = self._text(self._send("observation", None, query={self.id_field: identity}))
        return State(observation=found or "", key="", value=Position(live))

    def step(self, state: State, action: str) -> Step:
        """Sends an action.

        Raises:
            EnvFault: when the server does not answer, its reply is malformed, or the state is not the newest one of its
                episode.
        """
        assert isinstance(state.value, Position)
        identity = state.value.take("HttpEnv")
        text = action.encode(errors="replace").decode()
        reply = self._send("step", {self.id_field: identity, "action": text})
        fields = object_field("HttpEnv: the reply to step", reply)
        reward, done = reward_and_done("HttpEnv", fields)
        after = state.value.after(executed=True)
        over = done or after.turns >= self.max_steps
        if over:
            after.live.end()
        return Step(
            state=State(observation=self._text(fields) or "", key="", value=after),
            reward=reward,
            outcome=Outcome.TERMINATED if done else Outcome.TRUNCATED if over else Outcome.OPEN,
            success=done and reward >= self.success_at,
        )

    def close(self) -> None:
        """Closes all episodes on the server."""
        with self._lock:
            opened = [*self._open]
        for live in opened:
            live.end()

    def _forget(self, identity: Any) -> None:
        """Closes an episode on the server; the event loop does not wait for that."""
        if in_event_loop():
            in_background(partial(self._forget, identity), "bough-env-close")
            return
        try:
            self._send("close", {self.id_field: identity})
        except EnvFault:
            return  # a server that is gone has no episodes

    def _identity(self, reply: object) -> str | int:
        """The id of a new episode in the reply to `create`."""
        found = cast("Mapping[str, object]", reply).get(self.id_field) if isinstance(reply, dict) else reply
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise EnvFault(
                f"HttpEnv: got {reply!r:.200} from create; need an id, or an object with an id in {self.id_field!r}"
            )
        return found

    def _text(self, reply: Any) -> str | None:
        """The observation in a reply; None where it has none."""
        if isinstance(reply, str):
            return reply
        found = cast("Mapping[str, Any]", reply).get(self.observation_field) if isinstance(reply, dict) else None
        return found if found is None or isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    def _send(self, path: str, data: Mapping[str, Any] | None, *, query: Mapping[str, str | int] | None = None) -> Any:
        address = f"{self.url.rstrip('/')}/{path}" + (f"?{urlencode(query, errors='replace')}" if query else "")
        body = None if data is None else json.dumps(data).encode()
        try:
            request = urllib.request.Request(address, body, {"content-type": "application/json"})
            status, answer = body_of(request, self.deadline_s)
            if status < 400:
                return json.loads(answer)
        except (OSError, ValueError, HTTPException, RecursionError) as error:
            raise EnvFault(
                f"HttpEnv.url: got no answer from {address} ({type(error).__name__}: {error}); need a running server: "
                "start it, or correct url"
            ) from error
        raise EnvFault(f"HttpEnv: {address} answered with status {status}: {answer[:300]!r}")


_SETTINGS = tuple(each.name for each in fields(HttpEnv) if each.init)


def _made(settings: Mapping[str, Any]) -> HttpEnv:
    return HttpEnv(**settings)
