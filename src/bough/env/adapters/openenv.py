"""Environments behind OpenEnv servers."""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, cast

from bough.env.adapters.outside import (
    Live,
    Position,
    object_field,
    optional_address,
    reward_and_done,
    seed_of,
    seeded_tasks,
)
from bough.env.adapters.outside_checks import Url
from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.wrappers.replay import Replay
from bough.piece import Above, AtLeast, piece
from bough.tree import Outcome, Task
from bough.usercode.address import find_function
from bough.version import install

REFUSED = ("VALIDATION_ERROR", "INVALID_JSON")
"""Codes of errors that are due to the action."""

CLOSE_S = 10.0
"""Longest wait for the end of a session, in seconds."""


@piece
class OpenEnv:
    """An environment on a server of OpenEnv, over its WebSocket protocol. `openenv_env` makes one from functions.

    Each episode has a session of its own on the server. The agent's action is sent as one field of the server's action,
    or as the JSON of all its fields. The observation is the field "text" or "message", else the JSON of all fields.

    Attributes:
        url: The server's address, `http://host:8000`.
        field: The field of the server's action that the agent's text is; "" for the JSON of all fields.
        text: Address of `text(observation)`; "" for the above.
        success: Address of `success(observation, reward)`; "" for an episode that ends with a reward > 0.
        instructions: The rules.
        max_steps: Maximum number of actions.
        deadline_s: Deadline of each reply of the server.

    Raises:
        ValueError: when a number is out of its range, or `url` is no address.
    """

    waits: ClassVar[bool] = True

    url: Annotated[str, Url("http", "https", "ws", "wss")]
    field: str = "message"
    text: str = ""
    success: str = ""
    instructions: str = ""
    max_steps: Annotated[int, AtLeast(1)] = 50
    deadline_s: Annotated[float, Above(0)] = 60.0
    branching = Branching.NONE  # a session has one present state

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different seeds of a split; a hash of the seed decides the split."""
        return seeded_tasks("openenv", split, count, seed)

    def start(self, task: Task) -> State:
        """Opens a session and resets it with the task's seed.

        Raises:
            EnvFault: when the server does not answer.
            ValueError: when the task has no seed.
            ImportError: when websockets is not installed.
        """
        seed = seed_of("OpenEnv", task)
        live = Live(self._connected(), _close)
        with live.closed_on_error():
            return self._state(Position(live), self._reply(live.handle, "reset", {"seed": seed}))

    def step(self, state: State, action: str) -> Step:
        """Sends an action; one that the server refuses changes nothing.

        Raises:
            EnvFault: when the server does not answer or its reply is malformed, which closes the session; or when the
                state is not the newest one of its episode.
        """
        assert isinstance(state.value, Position)
        socket = state.value.take("OpenEnv")
        with state.value.live.closed_on_error():
            return self._stepped(state, state.value, socket, action)

    def _stepped(self, state: State, before: Position, socket: Any, action: str) -> Step:
        fields = self._fields(action)
        reply = None if fields is None else self._reply(socket, "step", fields)
        after = before.after(executed=reply is not None)
        over = after.turns >= self.max_steps
        if reply is None:
            unchanged = State(observation=state.observation, key=state.key, value=after)
            return Step(state=unchanged, outcome=Outcome.TRUNCATED if over else Outcome.OPEN, valid=False)
        reward, done = reward_and_done("OpenEnv", reply)
        success = find_function(self.success)(reply.get("observation"), reward) if self.success else done and reward > 0
        step = Step(
            state=self._state(after, reply),
            reward=reward,
            outcome=Outcome.TERMINATED if done else Outcome.TRUNCATED if over else Outcome.OPEN,
            success=bool(success),
        )
        if step.outcome is not Outcome.OPEN:
            after.live.end()
        return step

    def _fields(self, action: str) -> dict[str, Any] | None:
        """The fields of the server's action; None for a text that is no JSON object."""
        text = action.encode(errors="replace").decode()
        if self.field:
            return {self.field: text}
        try:
            found: object = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None

    def _connected(self) -> Any:
        try:
            from websockets.exceptions import WebSocketException
            from websockets.sync.client import connect
        except ImportError as error:
            raise ImportError(f"websockets is not installed; do: {install('openenv')}") from error
        address = self.url.rstrip("/").replace("http", "ws", 1) + "/ws"
        try:
            close_s = min(CLOSE_S, self.deadline_s)
            return connect(address, open_timeout=self.deadline_s, close_timeout=close_s, max_size=None, proxy=None)
        except (OSError, TimeoutError, WebSocketException) as error:
            raise EnvFault(
                f"OpenEnv.url: got no session at {address} ({error}); need a running server: start it, or correct url"
            ) from error

    def _reply(self, socket: Any, kind: str, data: Mapping[str, Any]) -> dict[str, Any] | None:
        """The server's reply; None for an action that it refuses."""
        from websockets.exceptions import WebSocketException

        try:
            socket.send(json.dumps({"type": kind, "data": data}))
            received: object = json.loads(socket.recv(timeout=self.deadline_s))
        except (OSError, TimeoutError, WebSocketException, ValueError, RecursionError) as error:
            raise EnvFault(f"OpenEnv: got no reply to {kind} from {self.url} ({error})") from error
        reply = object_field(f"OpenEnv: the reply to {kind}", received)
        found = object_field(f"OpenEnv: the data of the reply to {kind}", reply.get("data"))
        if reply.get("type") != "error":
            return found
        if kind == "step" and found.get("code") in REFUSED:
            return None
        raise EnvFault(f"OpenEnv: {kind} failed on {self.url}: {found.get('message')} ({found.get('code')})")

    def _state(self, position: Position, reply: Mapping[str, Any] | None) -> State:
        observation = object_field("OpenEnv: the observation", (reply or {}).get("observation"))
        if self.text:
            text = str(find_function(self.text)(observation))
        else:
            found = [observation[name] for name in ("text", "message") if isinstance(observation.get(name), str)]
            text = found[0] if found else json.dumps(observation, ensure_ascii=False)
        return State(observation=text, key="", value=position)


def _close(socket: Any) -> None:
    socket.close()


def openenv_env(
    url: str,
    *,
    field: str = "message",
    text: Callable[..., str] | None = None,
    success: Callable[..., bool] | None = None,
    instructions: str = "",
    max_steps: int = 50,
    deadline_s: float = 60.0,
) -> Replay:
    """An environment on a server of OpenEnv with branching, for one that draws from the seed of `reset` alone.

    Args:
        url: The server's address.
        field: The field of the server's action that the agent's text is; "" for the JSON of all fields.
        text: `text(observation)` returns what the agent reads.
        success: `success(observation, reward)`; None for an episode that ends with a reward > 0.
        instructions: The rules.
        max_steps: Maximum number of actions.
        deadline_s: Deadline of each reply of the server.
    """
    env = OpenEnv(
        url=url,
        field=field,
        text=optional_address(text),
        success=optional_address(success),
        instructions=instructions,
        max_steps=max_steps,
        deadline_s=deadline_s,
    )
    return Replay(env=env)
