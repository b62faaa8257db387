"""A vLLM server on this machine: starts it, watches it, and loads weights into it."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]
from torch import Tensor

from bough.engine.adapted_policy import AdaptedPolicy
from bough.engine.engine import EngineFault
from bough.engine.vllm import Vllm
from bough.engine.vllm_adapters import VllmAdapters
from bough.units import GIB

if TYPE_CHECKING:
    from bough.engine.model import ServedPolicy

SIDE = Path(__file__).parent / "vllm_side"
"""The folder of modules that run inside vLLM."""

SHARED_MEMORY = Path("/dev/shm")

GPU_SHARE = 0.4
"""The share of a GPU's memory that vLLM takes beside the learner. Its own default of nine tenths leaves too little."""

SHOWN = 1000
"""Most characters of the server's log in an error message."""

CONTROL_S = 60.0
"""Longest time of one step of a weight update, seconds."""

QUIET = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
}
"""The server's environment: with the endpoints that load weights and adapters, without reports."""

SERVED = "policy"
"""The name of the model in requests."""


class VllmServer:
    """One server at a time; a dead one is replaced by a new one with the newest weights.

    Attributes:
        socket: Path of the socket.
        number: Number of servers started so far.
    """

    def __init__(self, settings: Vllm, python: str, policy: "ServedPolicy") -> None:
        """Write the policy to a folder and start the first server.

        Raises:
            ValueError: when it does not start; for `Vllm.adapters` when the policy has none.
        """
        self._settings, self._python = settings, python
        self._device = policy.device.type
        self._dtype = str(policy.dtype).removeprefix("torch.")
        self._context_tokens = settings.context_of(policy.context_tokens)
        self._adapters: VllmAdapters | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="bough-vllm-", dir=_room(policy)))
        self.socket = self._folder / "socket"
        self.number = 0
        self._newest = 0
        self._broken = ""
        self._asleep = False
        self._process: subprocess.Popen[bytes] | None = None
        # A replacement must not start with old weights while new ones are loaded.
        self._changing = threading.RLock()
        try:
            self._shapes = {name: tuple(weight.shape) for name, weight in self._save(policy).items()}
            self._start()
            if self._adapters is not None:
                self._update()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int | None:
        """The process id of the present server."""
        return self._process.pid if self._process else None

    @property
    def served(self) -> str:
        """The name of the newest weights in requests."""
        return SERVED if self._adapters is None else self._adapters.name

    def load(self, weights: Mapping[str, Tensor], version: int, in_use: AbstractSet[str] = frozenset()) -> None:
        """Load new weights and drop the KV cache.

        Requests in flight continue under the new weights: their keys and values are computed again by them. With
        adapters they keep theirs.

        Args:
            weights: The model's, or those of the adapters.
            version: Their version.
            in_use: The names that requests in flight have.

        Raises:
            ValueError: when names or shapes differ from the model's. The server keeps the old weights then.
            EngineFault: when the server fails, and a new one does too.
        """
        # vLLM takes any subset of the weights without a word, and an unknown name ends it.
        self._check(weights)
        with self._changing:
            if self._adapters is not None:
                self._adapters.write(weights)
            else:
                fresh = self._folder / "fresh.safetensors"
                save_file({name: weight.detach().contiguous() for name, weight in weights.items()}, fresh)
                fresh.replace(self._weights)
            self._newest = version
            try:
                self._update(in_use)
            except httpx2.HTTPError:
                self.replace(self.number, "it failed in an update of the weights")

    def drop_cache(self) -> None:
        """Drop the KV cache; that of requests in flight is computed again.

        Raises:
            EngineFault: when the server fails, and a new one does too.
        """
        self._control("/reset_prefix_cache?reset_running_requests=true", "it did not drop its cache")

    def sleep(self) -> None:
        """Free the GPU; nothing when that is done.

        Raises:
            EngineFault: when the server fails, and a new one does too. The new one is awake.
        """
        if self._asleep:
            return
        self._asleep = True
        self._control("/sleep?level=1", "it did not free the GPU")

    def wake(self) -> None:
        """Take the GPU's memory again; nothing when that is done.

        Raises:
            EngineFault: as of `sleep`.
        """
        if self._asleep:
            self._control("/wake_up", "it did not take the GPU's memory again")
            self._asleep = False

    def _control(self, path: str, why: str) -> None:
        started = self.number
        try:
            self._post(path)
        except httpx2.HTTPError:
            self.replace(started, why)

    def replace(self, number: int, why: str) -> str:
        """End server `number` and start another one; does nothing when that has happened already.

        Returns:
            The end of the log of the server that was replaced.

        Raises:
            EngineFault: after too many replacements, or when the new server does not start.
        """
        with self._changing:
            if self._broken:
                raise EngineFault(self._broken)
            if number != self.number:
                return "It has been replaced"
            log = self._end()
            if self.number > self._settings.restarts:
                self._broken = (
                    f"the vLLM server failed ({why}) after {self.number - 1} replacements (Vllm.restarts). {log}"
                )
                raise EngineFault(self._broken)
            try:
                self._start()
                if self._adapters is not None or self._weights.is_file():
                    self._update()
            except (ValueError, httpx2.HTTPError) as error:
                self._broken = f"the vLLM server failed ({why}), and its replacement too: {error}"
                raise EngineFault(self._broken) from error
            return log

    @property
    def alive(self) -> bool:
        """Whether the server answers that it is in order."""
        if self._process is None or self._process.poll() is not None:
            return False
        try:
            with self._client(5.0) as client:
                return client.get("/health").is_success
        except httpx2.HTTPError:
            return False

    def close(self) -> None:
        """End the server and remove its files. Safe to call twice."""
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _weights(self) -> Path:
        """The newest weights, for a replacement."""
        return self._folder / "weights.safetensors"

    def _check(self, weights: Mapping[str, Tensor]) -> None:
        got = {name: tuple(weight.shape) for name, weight in weights.items()}
        for name, need in self._shapes.items():
            if got.get(name) != need:
                raise ValueError(f"load_weights: got {name!r} {got.get(name, 'not at all')}; need {need}, as before")
        if unknown := got.keys() - self._shapes.keys():
            raise ValueError(f"load_weights: got {min(unknown)!r}, which the model does not have; need the same model")

    def _start(self) -> None:
        if self._adapters is not None:
            # The completions that used older ones ended with their server.
            self._adapters.remove_unused(frozenset())
        self.socket.unlink(missing_ok=True)
        log = self._folder / "log"
        environment = os.environ | QUIET | {"PYTHONPATH": str(SIDE)}
        if self._device == "cpu" and self._settings.cache_gib is not None:
            environment["VLLM_CPU_KVCACHE_SPACE"] = str(self._settings.cache_gib)
        command = [self._python, str(SIDE / "bough_vllm_serve.py"), *self._arguments()]
        try:
            with log.open("wb") as output:
                # A group of its own: vLLM's processes end together. It ends when its input does.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
        except OSError as error:
            raise ValueError(f"Vllm.python: got {self._python!r} ({error}); need a Python that has vLLM") from error
        deadline = time.monotonic() + self._settings.start_s
        while not self.alive:
            if self._process.poll() is not None:
                raise ValueError(f"the vLLM server ended with status {self._process.returncode}. {self._end()}")
            if time.monotonic() > deadline:
                raise ValueError(
                    f"the vLLM server did not answer within {self._settings.start_s:g} s (Vllm.start_s). {self._end()}"
                )
            time.sleep(0.2)
        self._asleep = False
        self._post("/init_weight_transfer_engine", {"init_info": {}})
        self._post("/update_weight_version", {"new_version": str(self._newest)})
        self.number += 1

    def _arguments(self) -> list[str]:
        """The arguments of vLLM's server."""
        settings = self._settings
        chosen: dict[str, object] = {
            "model": self._folder / "model",
            "served_model_name": SERVED,
            "uds": self.socket,
            "dtype": self._dtype,
            "max_model_len": self._context_tokens,
            "max_num_seqs": settings.slots,
            "enforce_eager": not settings.compiled,
            "logprobs_mode": "processed_logprobs",
            "max_logprobs": -1 if settings.entropies else 1,
            "generation_config": "vllm",
            "enable_sleep_mode": settings.sleeps,
            "enable_scale_out": True,
            "disable_log_stats": True,
            "disable_uvicorn_access_log": True,
            "worker_extension_cls": "bough_vllm_weights.Worker",
            "weight_transfer_config": json.dumps({"backend": "bough-file"}),
        }
        chosen |= device_arguments(self._device, settings.cache_gib)
        chosen |= {} if self._adapters is None else self._adapters.arguments
        found = list[str]()
        for name, value in {**chosen, **settings.arguments}.items():
            flag = name.replace("_", "-")
            if isinstance(value, bool):
                if value or name == "enable_chunked_prefill":
                    found.append(f"--{flag}" if value else f"--no-{flag}")
            elif value is not None:
                found += [f"--{flag}", value if isinstance(value, str) else str(value)]
        return found

    def _save(self, policy: "ServedPolicy") -> Mapping[str, Tensor]:
        """Write the model's files, and the adapters' where vLLM applies them; returns the weights of an update."""
        if not self._settings.adapters:
            policy.save(self._folder / "model")
            return policy.weights()
        adapters = policy.adapters() if isinstance(policy, AdaptedPolicy) else None
        if adapters is None or not isinstance(policy, AdaptedPolicy):
            raise ValueError(
                "Vllm.adapters: got True for a policy without adapters; need one with them, such as "
                "policy.lora='Lora(rank=16)', or adapters=false"
            )
        self._adapters = VllmAdapters(self._folder, adapters)
        policy.save_base(self._folder / "model")
        return adapters.weights

    def _update(self, in_use: AbstractSet[str] = frozenset()) -> None:
        """Load the files of the newest weights."""
        if self._adapters is not None:
            self._post("/v1/load_lora_adapter", {"lora_name": self.served, "lora_path": str(self._adapters.path)})
            for name in self._adapters.remove_unused(in_use):
                self._post("/v1/unload_lora_adapter", {"lora_name": name})
            return
        # "keep" holds requests in flight and computes their keys and values again.
        self._post("/pause?mode=keep&clear_cache=true")
        self._post("/start_weight_update")
        self._post("/update_weights", {"update_info": {"path": str(self._weights)}})
        self._post("/finish_weight_update", {"weight_version": str(self._newest)})
        self._post("/resume")

    def _post(self, path: str, body: Mapping[str, object] | None = None) -> None:
        with self._client(CONTROL_S) as client:
            client.post(path, json=body).raise_for_status()

    def _client(self, deadline_s: float) -> httpx2.Client:
        return httpx2.Client(
            transport=httpx2.HTTPTransport(uds=str(self.socket)), base_url="http://vllm", timeout=deadline_s
        )

    def _end(self) -> str:
        """End the server's processes; returns the last lines of its log."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        log = self._folder / "log"
        return _shown(log.read_text(errors="replace")) if log.is_file() else "It has no log"


def device_arguments(device: str, cache_gib: int | None) -> dict[str, object]:
    """Arguments of vLLM's server that depend on the type of the policy's device."""
    if device == "cpu":
        # A request with a seed whose prompt is cut into chunks ends vLLM's CPU engine.
        return {"enable_chunked_prefill": False}
    if cache_gib is None:
        return {"gpu_memory_utilization": GPU_SHARE}
    return {"kv_cache_memory_bytes": cache_gib * GIB}


def _shown(log: str) -> str:
    """The errors in a log, the first ones first; its end when there is none."""
    # An error's details may be on the line after it.
    errors = [
        match[0]
        for match in re.finditer(r"\w*(Error|Exception|error): .*(\n  .*)?", log)
        if "WARNING" not in log[log.rfind("\n", 0, match.start()) + 1 : match.start()]
    ]
    found = "\n".join(dict.fromkeys(errors))[:SHOWN]
    if found:
        return f"Its log reports:\n{found}"
    return f"Its log ends with:\n{log[-SHOWN:].strip() or '(nothing)'}"


def _room(policy: "ServedPolicy") -> Path | None:
    """Shared memory when the weights fit there three times; else None, the folder for temporary files."""
    need = 3 * sum(weight.numel() * weight.element_size() for weight in policy.weights().values())
    fits = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > need
    return SHARED_MEMORY if fits else None
