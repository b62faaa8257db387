"""The Java machine of ScienceWorld: a bounded number of live episodes, rebuilt by replay where one was closed."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from bough.env.env import EnvFault
from bough.version import install

INSTALL = f"do: {install('scienceworld')}, and install Java (a JRE of version 8 or later)"
BASE_MB = 96
"""Heap of the machine without episodes, and for what a call leaves until the next collection; MiB."""
EPISODE_MB = 14
"""Heap of one live episode, MiB; measured: 10.5 to 13.8 for each of the 30 topics."""
CLOSING_SECONDS = 10.0
"""Longest wait for the thread that closes the pipes of an ended machine."""
LOCK = threading.RLock()
"""Held during every use of a machine: the options of Java are passed by the environment of this process."""

Result = TypeVar("Result")


class MachineDied(EnvFault):
    """The Java machine ended during a call; the next use starts another one."""


@dataclass(slots=True, eq=False, kw_only=True)
class Game:
    """An episode: what rebuilds it, and its simulator while it is live.

    Attributes:
        topic: The task's name.
        variation: The number of its variation.
        simplifications: The simulator's simplifications.
        actions: The actions so far; "" for one that was not sent.
        score: The present score, 0 to 1; 0 after a mistake that ends the episode.
        key: The key of the newest state; "" before the first one.
        machine: The machine with the simulator; None when the episode was closed.
        simulator: The simulator's interface, an object in the Java machine.
    """

    topic: str
    variation: int
    simplifications: str
    actions: list[str] = field(default_factory=list[str])
    score: float = 0.0
    key: str = ""
    machine: "Machine | None" = None
    simulator: Any = None


def release(game: Game) -> None:
    """Closes an episode; its simulator serves the next one."""
    if game.machine is not None:
        game.machine.release(game)


class Machine:
    """A Java machine with at most `most` simulators, each with one episode or idle."""

    def __init__(self, memory_mb: int) -> None:
        """Starts the process.

        Raises:
            ImportError: when the simulator or Java is not installed.
            EnvFault: when Java does not start.
        """
        if find_spec("scienceworld") is None or find_spec("py4j") is None:
            raise ImportError(f"ScienceWorld is not installed; {INSTALL}")
        protocol: Any = import_module("py4j.protocol")
        self._raised: type[Exception] = protocol.Py4JJavaError
        self._errors: tuple[type[Exception], ...] = (protocol.Py4JError, OSError)
        self.most = most_episodes(memory_mb)
        self.live: OrderedDict[int, Game] = OrderedDict()
        self.idle: list[Any] = []
        options = os.environ.get("JAVA_TOOL_OPTIONS")
        # Equal hashes of objects: without them sets of objects are listed in another order in each episode.
        os.environ["JAVA_TOOL_OPTIONS"] = (
            f"-Xmx{memory_mb}m -XX:ActiveProcessorCount=1 -XX:+ExitOnOutOfMemoryError "
            "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions -XX:hashCode=2"
        )
        try:
            self._env: Any = import_module("scienceworld").ScienceWorldEnv("")
        except FileNotFoundError as error:
            raise ImportError(f"ScienceWorld found no Java; {INSTALL}") from error
        except (*self._errors, ValueError) as error:
            raise EnvFault(f"ScienceWorld: the Java machine did not start: {error}") from error
        finally:
            if options is None:
                del os.environ["JAVA_TOOL_OPTIONS"]
            else:
                os.environ["JAVA_TOOL_OPTIONS"] = options
        client = self._env._gateway._gateway_client
        client._create_connection = partial(open_connection, client.gateway_parameters, client.gateway_property)
        self.topics: tuple[str, ...] = tuple(map(str, self._env.get_task_names()))

    @property
    def process_id(self) -> int:
        """The process of the Java machine."""
        return int(self._env._gateway.java_process.pid)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._env._gateway.java_process.poll() is None

    def reach(self, game: Game) -> int:
        """Makes an episode live, by replay where it was closed or its machine has ended.

        Args:
            game: The episode; it becomes the most recently used one.

        Returns:
            The number of replayed actions.

        Raises:
            EnvFault: when the machine broke.
        """
        if game.machine is self:
            self.live.move_to_end(id(game))
            return 0
        simulator = self._simulator()
        self.run(simulator.load, game.topic, game.variation, game.simplifications, False)
        for action in filter(None, game.actions):
            self.run(simulator.step, action)
        game.machine, game.simulator, self.live[id(game)] = self, simulator, game
        return len(game.actions)

    def release(self, game: Game) -> None:
        """Closes an episode. Runs in the finalizer of its states too, so it takes no lock."""
        if self.live.pop(id(game), None) is not None:
            self.idle.append(game.simulator)
            game.machine = game.simulator = None

    def load(self, topic: str, variation: int, simplifications: str, *, gold: bool) -> Any:
        """A simulator with a variation, for questions about it; give it back to `idle`.

        Raises:
            EnvFault: when the machine broke.
        """
        simulator = self._simulator()
        self.run(simulator.load, topic, variation, simplifications, gold)
        return simulator

    def run(self, call: Any, *arguments: object) -> Any:
        """Calls the simulator.

        Raises:
            MachineDied: when the machine has ended.
            EnvFault: when the simulator raised an exception.
        """
        try:
            return call(*arguments)
        except self._errors as error:
            if isinstance(error, self._raised) and self.alive:
                raise EnvFault(f"ScienceWorld: the simulator raised {str(error)[:500]}") from None
            self.end()
            raise MachineDied(f"ScienceWorld: the Java machine broke: {type(error).__name__}") from None

    def end(self) -> None:
        """Ends the Java machine, whatever state it is in; its episodes are closed."""
        for game in list(self.live.values()):
            self.release(game)
        gateway = self._env._gateway
        process = gateway.java_process
        gateway._gateway_client.is_connected = False  # No object is collected in a machine that ends.
        process.kill()
        process.wait()
        with suppress(*self._errors):
            gateway.close(keep_callback_server=False, close_callback_server_connections=True)
        with suppress(OSError):
            process.stdin.close()
        for thread in threading.enumerate():
            if getattr(thread, "proc", None) is process:  # It waits for the process too, then closes the pipes.
                thread.join(CLOSING_SECONDS)
        self._env._obj_tree_tempdir.cleanup()

    def _simulator(self) -> Any:
        """A simulator: an idle one, a new one, or that of the least recently used episode, which is closed."""
        while not self.idle and len(self.live) >= self.most:
            self.release(next(iter(self.live.values())))
        return (
            self.idle.pop()
            if self.idle
            else self.run(self._env._gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface)
        )


def open_connection(parameters: Any, preferences: Any) -> Any:
    """Connects to a Java machine; closes the socket where that fails.

    py4j's own leaves it to the last reference, which a log record or a traceback can keep for long.

    Args:
        parameters: py4j's `GatewayParameters`, with the address and the port.
        preferences: py4j's `GatewayProperty`.

    Returns:
        py4j's `GatewayConnection`.

    Raises:
        Py4JNetworkError: when no machine listens there.
    """
    connection = import_module("py4j.java_gateway").GatewayConnection(parameters, preferences)
    try:
        connection.start()
    except BaseException:
        connection.socket.close()
        raise
    return connection


_machines: dict[int, Machine] = {}
"""The machines of this process by the size of their heap, MiB."""


def most_episodes(memory_mb: int) -> int:
    """The number of live episodes for which a heap is large enough."""
    return (memory_mb - BASE_MB) // EPISODE_MB


def machine(memory_mb: int) -> Machine:
    """The machine of this process with a heap of this size; a new one where it has ended.

    Raises:
        ImportError: when the simulator or Java is not installed.
        EnvFault: when Java does not start.
    """
    with LOCK:
        found = _machines.get(memory_mb)
        if found is not None and not found.alive:
            found.end()
            found = None
        if found is None:
            found = _machines[memory_mb] = Machine(memory_mb)
        return found


def in_machine(memory_mb: int, use: Callable[[Machine], Result]) -> Result:
    """Uses the machine; once more, in a new one, where it ends meanwhile.

    Raises:
        EnvFault: when the new one ends too, or the simulator raised an exception.
        ImportError: when the simulator or Java is not installed.
    """
    with LOCK:
        try:
            return use(machine(memory_mb))
        except MachineDied:
            return use(machine(memory_mb))


def end_machine(memory_mb: int) -> None:
    """Ends the machine with a heap of this size, where one runs."""
    with LOCK:
        if found := _machines.pop(memory_mb, None):
            found.end()
