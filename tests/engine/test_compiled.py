"""In processes of their own: checks of shapes at run time, which all other tests have, cannot be compiled."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.toys import Toy
from torch.profiler import profile

from bough.engine import Completion, Local, Request, Sampling
from bough.policy import Tiny, product
from bough.policy.policy import Policy

PROMPTS = [tuple(range(5, 30)), (7, 8, 9), tuple(range(100, 140))]


def ask(local: Any, count: int) -> list[Completion]:
    """So many requests together."""

    async def all_() -> list[Completion]:
        requests = [
            Request(prompt_tokens=prompt, sampling=Sampling(max_tokens=9), stop_tokens=(), seed=number)
            for number, prompt in enumerate(PROMPTS[:count])
        ]
        return await asyncio.gather(*(local.generate(request) for request in requests))

    return asyncio.run(all_())


def policy(layers: int = 2, seed: int = 0) -> Policy:
    return Tiny(layers=layers, width=32, heads=2, vocab_tokens=260, context_tokens=128, seed=seed).build(["a b"])


def compare() -> None:
    """Say how far compiled and plain engines are apart: few requests, new weights, another model beside."""
    torch.set_num_threads(1)
    given, other = policy(), policy(seed=1)
    engines, others = (
        [Local(compile=faster).build(one.replica()) for faster in (False, True)] for one in (given, other)
    )
    apart, same = list[float](), list[bool]()
    for version in range(2):
        for count, asked in ((1, engines), (3, engines), (3, others)):
            plain, compiled = (ask(engine, count) for engine in asked)
            same += [one.tokens == other.tokens for one, other in zip(plain, compiled, strict=True)]
            apart += [
                abs(x - y)
                for one, other in zip(plain, compiled, strict=True)
                for x, y in zip(one.logprobs or (), other.logprobs or (), strict=True)
            ]
        with torch.no_grad():
            for weight in given.parameters().values():
                weight.mul_(1.5)
        for engine in engines:
            engine.sync(given.weights(), version + 1)
    print(json.dumps({"apart": max(apart), "numbers": len(apart), "same": all(same)}))


def compare_by_onednn() -> None:
    """The same where oneDNN multiplies, small matrices as well."""
    product.halved, product.KNOWN = lambda: True, 0
    with profile() as seen:
        compare()
    assert {"bough::multiply", "mkldnn::_linear_pointwise"} <= {event.key for event in seen.key_averages()}


def fail() -> None:
    """Say what is said where there is no compiler."""
    import torch._inductor.config as settings

    settings.cpp.cxx = ("no-such-compiler",)  # type: ignore[assignment]
    said = list[str]()
    for compiles in (lambda: Local(compile=True).build(policy(1).replica()), policy(1).compile):
        try:
            compiles()
        except ValueError as error:
            said.append(str(error))
    print(json.dumps(said))


def run(what: str, cache: Path) -> Any:
    root = Path(__file__).parents[2]
    code = f"from tests.engine.test_compiled import {what}; {what}()"
    environ = {**os.environ, "PYTHONPATH": str(root), "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environ, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="there is no C++ compiler")
@pytest.mark.parametrize("compared", [compare, compare_by_onednn])
def test_compiled_layers_say_the_same(tmp_path: Path, compared: Callable[[], None]) -> None:
    found = run(compared.__name__, tmp_path)
    assert found["same"]
    assert found["numbers"] == 2 * (1 + 3 + 3) * 9
    assert found["apart"] < 1e-5


def test_without_a_compiler_one_is_told(tmp_path: Path) -> None:
    told = run("fail", tmp_path)
    assert len(told) == 2
    for said in told:
        assert said.startswith("got a model that torch cannot compile here (")
        assert said.endswith("a C++ compiler (g++ or clang++); or say compile=false")


class Rigid:
    """All that an engine needs, and no faster form."""

    def __init__(self) -> None:
        self._toy = Toy()

    def __getattr__(self, name: str) -> Any:
        if name == "compile":
            raise AttributeError(name)
        return getattr(self._toy, name)


def test_a_model_that_has_no_compiled_form_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Local.compile: got a Rigid; need a model that can be compiled"):
        Local(compile=True).build(Rigid())
