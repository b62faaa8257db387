"""What the server adds to an answer, and what clients that misbehave add to the answers of others.

python bench/serve.py latency    # an answer of the engine alone, on a kept connection, and on a new one, in turn
python bench/serve.py misuse     # 290 clients alone, and beside ten that misbehave in every way
python bench/serve.py bodies     # the cost of bodies of 64 MiB
python bench/serve.py grammar    # the tokens of a processor second with a schema of the answer, and without
"""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import resource
import statistics
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from socket import create_connection
from typing import Any
from urllib.parse import urlsplit

from bough.engine import Local, Request, Sampling
from bough.policy import Tiny
from bough.serve import Conversations, EngineSession
from bough.serve.server import serve
from machine import machine

MOST_ADDED_MS = 3.0
MOST_SLOWER = 2.0
LEAST_SPEED = 0.7
MOST_BODY_S, MOST_BODY_MIB = 0.2, 200
TOKENS = 8
CHAT_TOKENS = 64
FORMAT = {
    "type": "json_schema",
    "json_schema": {"schema": {"type": "array", "items": {"type": "integer"}, "minItems": CHAT_TOKENS}},
}
"""A format whose answers never end within their tokens."""
JSON = {"Content-Type": "application/json"}


def main() -> None:
    """Measure, print, and fail where a bound is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measure", choices=("latency", "misuse", "bodies", "grammar"))
    parser.add_argument("--rounds", type=int, default=5, help="of `misuse`; of 40 answers each for `latency`")
    parser.add_argument("--clients", type=int, default=300)
    parser.add_argument("--misbehaving", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one round of two clients, without a bound; of `grammar`")
    options = parser.parse_args()
    if options.measure == "latency":
        asyncio.run(latency(40 * options.rounds))
    elif options.measure == "misuse":
        misuse(options.clients - options.misbehaving, options.misbehaving, options.rounds)
    elif options.measure == "bodies":
        bodies()
    else:
        asyncio.run(
            grammar(1, 2, 8, bound=0) if options.quick else grammar(options.rounds, 32, CHAT_TOKENS, bound=LEAST_SPEED)
        )
    print(machine())


def session() -> tuple[Any, EngineSession]:
    """An engine of a small random policy, and its session."""
    policy = Tiny(layers=2, width=64, heads=4, vocab_tokens=300, context_tokens=2048).build(["hello"])
    engine = Local(slots=64).build(policy)
    sampling = Sampling(max_tokens=TOKENS, entropies=False)
    return engine, EngineSession(engine, Conversations(policy.renderer), models=("m",), sampling=sampling, key="")


async def latency(rounds: int) -> None:
    """Print the medians, in milliseconds."""
    engine, served = session()
    request = Request(prompt_tokens=(5, 6, 7), sampling=Sampling(max_tokens=TOKENS), stop_tokens=(), seed=1)
    body = json.dumps({"model": "m", "prompt": [5, 6, 7], "max_tokens": TOKENS, "seed": 1}).encode()
    loop = asyncio.get_running_loop()

    def measure(url: str) -> dict[str, float]:
        kept = connect(url)

        def alone() -> None:
            asyncio.run_coroutine_threadsafe(engine.generate(request), loop).result()

        def fresh() -> None:
            used = connect(url)
            ask(used, body)
            used.close()

        spent: dict[str, list[float]] = {"alone": [], "kept": [], "new": []}
        for _ in range(rounds):
            for name, act in (("alone", alone), ("kept", lambda: ask(kept, body)), ("new", fresh)):
                began = time.perf_counter()
                act()
                spent[name].append(1e3 * (time.perf_counter() - began))
        added = [kept - alone for kept, alone in zip(spent["kept"], spent["alone"], strict=True)]
        return {name: statistics.median(each) for name, each in (spent | {"added": added}).items()}

    async with serve(served) as url:
        found = await asyncio.to_thread(measure, url)
    await engine.close()
    added = found["added"]
    print(
        f"{TOKENS} tokens: {found['alone']:.1f} ms alone, {found['kept']:.1f} ms on a kept connection "
        f"(the median difference {added:+.1f} ms), {found['new']:.1f} ms on a new one"
    )
    assert added < MOST_ADDED_MS, f"got {added:.1f} ms; need less than {MOST_ADDED_MS}"


def misuse(honest: int, misbehaving: int, rounds: int) -> None:
    """Print how much slower honest clients are, and check that their answers are equal."""
    context = multiprocessing.get_context("spawn")
    going, ended = context.Event(), context.Event()
    spent: dict[bool, list[list[float]]] = {False: [], True: []}
    busy: dict[bool, list[float]] = {False: [], True: []}
    answers: set[tuple[str, ...]] = set()
    with server() as (url, pid):
        trouble = context.Process(target=misbehave, args=(url, misbehaving, going, ended))
        trouble.start()
        clients(url, honest)
        for _ in range(rounds):
            for beside in (False, True):
                going.set() if beside else going.clear()
                time.sleep(1)
                began = cpu_s(pid)
                found = clients(url, honest)
                busy[beside].append(cpu_s(pid) - began)
                answers.add(tuple(text for text, _ in found))
                # Which client is served first is chance: the fastest is compared with the fastest, and so on.
                spent[beside].append(sorted(seconds for _, seconds in found))
        ended.set()
        going.set()
        trouble.join()
    assert len(answers) == 1, "got other answers beside clients that misbehave"
    alone, beside = ([statistics.median(each) for each in zip(*spent[key], strict=True)] for key in (False, True))
    ratios = [one / other for one, other in zip(beside, alone, strict=True)]
    print(
        f"{honest} clients, {rounds} rounds, equal answers: {statistics.median(alone):.2f} s alone, beside "
        f"{misbehaving} that misbehave {statistics.median(ratios):.2f} times as long, at most {max(ratios):.2f}; the "
        f"server's processor {statistics.median(busy[False]):.1f} s alone, {statistics.median(busy[True]):.1f} s beside"
    )
    assert max(ratios) < MOST_SLOWER, f"got {max(ratios):.2f}; need less than {MOST_SLOWER}"


async def grammar(rounds: int, count: int, tokens: int, *, bound: float) -> None:
    """Print the tokens of a processor second of server and clients, the most of all rounds, and check their ratio."""
    engine, served = session()
    async with serve(served) as url:
        best = await asyncio.to_thread(fastest, url, rounds, count, tokens)
    await engine.close()
    ratio = best[True] / best[False]
    print(
        f"| {count} clients, {tokens} tokens each | {best[False]:,.0f} tokens a processor second | in a schema "
        f"{best[True]:,.0f} | {ratio:.2f} |"
    )
    assert ratio >= bound, f"got {ratio:.2f} of the speed without a schema; need {bound}"


def fastest(url: str, rounds: int, count: int, tokens: int) -> dict[bool, float]:
    """The most tokens of a processor second of all rounds, with a schema and without, in turn."""
    best = {False: 0.0, True: 0.0}
    for _ in range(1 + rounds):
        for restricted in best:
            counts = [0] * count
            body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
            body |= {"max_tokens": tokens} | ({"response_format": FORMAT} if restricted else {})

            def client(number: int, body: dict[str, Any] = body, counts: list[int] = counts) -> None:
                used = connect(url)
                for seed in range(2):
                    sent = json.dumps(body | {"seed": 2 * number + seed}).encode()
                    counts[number] += json.loads(ask(used, sent, "/v1/chat/completions"))["usage"]["completion_tokens"]
                used.close()

            began = time.process_time()
            together(client, count)
            best[restricted] = max(best[restricted], sum(counts) / (time.process_time() - began))
    return best


def together(client: Callable[[int], None], count: int) -> None:
    """Run so many clients at once, until all have ended."""
    threads = [threading.Thread(target=client, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def bodies() -> None:
    """Print the time and the memory of a body of 64 MiB: with its length in the header, and in chunks."""
    whole = b'{"model":"m","prompt":[' + b"1.5," * 2**24 + b"1.5]}"
    with server() as (url, pid):
        ask(connect(url), json.dumps({"model": "m", "prompt": "hello"}).encode())
        parts = (whole[place : place + 2**16] for place in range(0, len(whole), 2**16))
        for name, sent in (("a length", whole), ("chunks", parts)):
            memory, busy = resident(pid), cpu_s(pid)
            used = connect(url)
            with suppress(OSError):  # the connection ends before the body
                used.request("POST", "/v1/completions", sent, JSON)
            status = used.getresponse().status
            memory, busy = resident(pid) - memory, cpu_s(pid) - busy
            print(f"64 MiB with {name}: status {status}, {busy:.2f} s of the server's processor, {memory} MiB")
            assert busy < MOST_BODY_S, f"got {busy:.2f} s; need less than {MOST_BODY_S}"
            assert memory < MOST_BODY_MIB, f"got {memory} MiB; need less than {MOST_BODY_MIB}"


def cpu_s(pid: int) -> float:
    """The processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """The most memory that a process has had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def server() -> Generator[tuple[str, int]]:
    """The address of a server in a process of its own, and the process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=run_server, args=(there,))
    process.start()
    try:
        yield here.recv(), process.pid or 0
    finally:
        here.send("end")
        process.join()


def run_server(connection: Any) -> None:
    """Serve until a message comes."""

    async def run() -> None:
        engine, served = session()
        async with serve(served) as url:
            connection.send(url)
            await asyncio.to_thread(connection.recv)
        await engine.close()

    asyncio.run(run())


def clients(url: str, count: int) -> list[tuple[str, float]]:
    """The answer of each client to three requests, all clients at once, and its seconds."""
    found: list[tuple[str, float]] = [("", 0.0)] * count

    def client(number: int) -> None:
        used, texts, began = connect(url), list[str](), time.perf_counter()
        for seed in range(3):
            body = {"model": "m", "prompt": f"hello {number}", "seed": seed, "max_tokens": TOKENS}
            texts.append(json.loads(ask(used, json.dumps(body).encode()))["choices"][0]["text"])
        found[number] = "\n".join(texts), time.perf_counter() - began

    together(client, count)
    return found


def connect(url: str) -> http.client.HTTPConnection:
    """A connection."""
    address = urlsplit(url)
    return http.client.HTTPConnection(str(address.hostname), address.port, timeout=600)


def ask(used: http.client.HTTPConnection, body: bytes, path: str = "/v1/completions") -> bytes:
    """The answer to a completion."""
    used.request("POST", path, body, JSON)
    answer = used.getresponse()
    text = answer.read()
    assert answer.status == 200, text
    return text


def misbehave(url: str, count: int, going: Event, ended: Event) -> None:
    """Misbehave in every way, again and again while `going`, as so many clients."""

    def client(number: int) -> None:
        held: list[Any] = []
        while not ended.is_set():
            for place in range(len(WAYS)):
                with suppress(OSError, http.client.HTTPException):
                    WAYS[(place + number) % len(WAYS)](url, held)
                going.wait()
            del held[:-50]

    together(client, count)


def post(body: bytes, path: str = "/v1/completions", **headers: str) -> Callable[[str, list[Any]], None]:
    """Sends a body, and reads the answer."""

    def act(url: str, held: list[Any]) -> None:
        del held
        used = connect(url)
        used.request("POST", path, body, JSON | {name.replace("_", "-"): text for name, text in headers.items()})
        used.getresponse().read()
        used.close()

    return act


def send(data: bytes, *, leave: bool) -> Callable[[str, list[Any]], None]:
    """Sends bytes on a connection, and leaves it or holds it open."""

    def act(url: str, held: list[Any]) -> None:
        address = urlsplit(url)
        used = create_connection((str(address.hostname), address.port or 0), timeout=60)
        used.sendall(data)
        used.close() if leave else held.append(used)

    return act


def body(**fields: object) -> bytes:
    """The body of a completion."""
    return json.dumps({"model": "m", "prompt": "x"} | fields).encode()


HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CALL = {"id": "1", "function": {"name": "f", "arguments": '{"a":' + "[" * 3000 + "]" * 3000 + "}"}}
DEEP = {"model": "m", "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [CALL]}]}
WRONG = b'{"model":"m","prompt":[' + b"1.5," * 2**19 + b"1.5]}"
WAYS: tuple[Callable[[str, list[Any]], None], ...] = (
    post(WRONG),
    post(WRONG.replace(b"prompt", b"messages"), "/v1/chat/completions"),
    post(b" " * 2**26),
    post(b"[" * 2**20),
    post(body(prompt="hello world " * 250_000)),
    post(body(prompt=["x"] * 1000, n=128)),
    post(body(n=10**9)),
    post(body(temperature=1e-310)),
    post(body(prompt=[2**70])),
    post(body(seed=10**400)),
    post(json.dumps(DEEP).encode(), "/v1/chat/completions"),
    post(b"[1]" * 10**6, "/v1/outcome"),
    post(body(), Content_Type="text/plain", Host="evil.example"),
    send(b"", leave=False),
    send(HEAD, leave=False),
    send(HEAD + b"Content-Length: 1000\r\n\r\n{", leave=False),
    send(HEAD + b"Content-Length: %d\r\n\r\n" % len(body()) + body(), leave=True),
    send(b"\x16\x03\x01" + bytes(1000), leave=True),
)

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    main()
