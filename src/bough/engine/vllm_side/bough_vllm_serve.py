"""Runs vLLM's server until standard input ends: with the process that started it, however that one ended."""

import os
import runpy
import signal
import threading


def _end_with_parent() -> None:
    # Not a buffered read, whose lock would disturb the end of the interpreter.
    while os.read(0, 4096):
        pass
    # vLLM's own processes are in the group.
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__", alter_sys=True)
