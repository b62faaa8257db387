"""Starts an agent program: sets its limits, then runs a function of a file or replaces itself by a command.

Runs as a script in the program's own process and imports nothing of Bough:

    python launch.py MEMORY_BYTES function FILE.py NAME
    python launch.py MEMORY_BYTES command COMMAND ARGUMENT ...

A function gets the task and the settings of an OpenAI client, `agent(task, {"base_url": ..., "api_key": ...})`. Its
result is posted to the path `/outcome` below the base URL.
"""

import asyncio
import importlib.util
import inspect
import json
import os
import resource
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
SIGKILL = 9


def main(memory_bytes: int, kind: str, *words: str) -> None:
    """Limit the memory, then run."""
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    _die_with_parent()
    if kind == "command":
        try:
            os.execvp(words[0], list(words))
        except OSError as error:
            sys.exit(f"cannot run {words[0]!r}: {error.strerror}; need a program on the PATH, or a path to one")
    _post(_run_function(*words))


def _run_function(file: str, name: str) -> object:
    """The result of an agent's function, plain or async."""
    spec = importlib.util.spec_from_file_location("bough_agent", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"got {file}; need a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["bough_agent"] = module
    sys.path.insert(0, str(Path(file).parent))
    spec.loader.exec_module(module)
    settings = {"base_url": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
    result = getattr(module, name)(json.loads(os.environ["BOUGH_TASK"]), settings)

    async def ended() -> object:
        return await result

    return asyncio.run(ended()) if inspect.isawaitable(result) else result


def _post(result: object) -> None:
    """Post the result."""
    from http.client import HTTPConnection
    from urllib.parse import urlsplit

    address = urlsplit(os.environ["OPENAI_BASE_URL"])
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    connection = HTTPConnection(address.hostname or "", address.port, timeout=60)
    connection.request("POST", f"{address.path}/outcome", json.dumps(result), headers)
    response = connection.getresponse()
    if response.status != 200:
        sys.exit(f"the outcome was not accepted: {response.read().decode()}")


def _die_with_parent() -> None:
    """End this process when its parent dies, where the system can do so."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
