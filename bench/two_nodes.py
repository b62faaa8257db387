"""Two nodes with firewalls that open the ports of docs/cluster.md only: connections, refusals and messages.

    sudo python bench/two_nodes.py torchrun restart secret blocked neighbour server
    sudo RAY_PYTHON=path/to/python python bench/two_nodes.py ray

Needs root, `ip`, `nft`, `unshare`, `nsenter` and `ss`; changes nothing outside of its network namespaces. Each node has
a namespace with its name, its folder and its ports of the kernel, 40000 to 40999; a virtual cable joins them. The
firewalls drop all packets, in and out, but those of the ports that the page opens, in the page's directions. Prints a
line for each check, and where one failed, the ends of both nodes' output.
"""

import argparse
import json
import os
import random
import re
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from machine import machine

KERNEL = "40000-40999"
BOUGH = "21000-21099"
RAY = "6379-6385, 10001-10101, 44217"
RENDEZVOUS, METRICS, SERVER = 29500, 9400, 8000
RUN = [
    "batch_tasks=4",
    "explorer.n=4",
    "tasks.count=20",
    "warmup.demonstrations=20",
    "warmup.epochs=1",
    "evaluation.tasks.count=4",
    "filters=()",
    "health.dead_batches=100000",
    "health.cut_batches=0",
]
RAY_PORTS = [
    "--node-manager-port=6380",
    "--object-manager-port=6381",
    "--runtime-env-agent-port=6382",
    "--metrics-export-port=6383",
    "--dashboard-agent-grpc-port=6384",
    "--dashboard-agent-listen-port=6385",
    "--min-worker-port=10002",
    "--max-worker-port=10101",
]


class Node:
    """A network namespace with one end of the cable, and a folder of its own: the nodes share no files of a run."""

    def __init__(self, number: int, folder: Path) -> None:
        self.name, self.address, self.number = f"node{number}", f"10.77.0.{number}", number
        self.home = folder / self.name
        for name in ("site", "ray"):
            (self.home / name).mkdir(parents=True)
        self.site = folder / "site"
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "--propagation", "private", "sleep", "1000000"]
        )
        while os.readlink(f"/proc/{self._holder.pid}/ns/uts") == os.readlink("/proc/self/ns/uts"):
            time.sleep(0.01)

    def connect(self, device: str, hosts: Path, names: Path) -> None:
        """Take an end of the cable, and name both nodes."""
        shell(f"ip link set {device} netns {self._holder.pid}")
        self.run(
            f"hostname {self.name}; mount --bind {hosts} /etc/hosts; mount --bind {names} /etc/resolv.conf; "
            f"mount --bind {self.home}/site {self.site}; mkdir -p /tmp/ray; mount --bind {self.home}/ray /tmp/ray; "
            f"mount -t tmpfs tmpfs /dev/shm; ip link set lo up; ip link set {device} name eth0; "
            f"ip addr add {self.address}/24 dev eth0; ip link set eth0 up; ip route add default dev eth0; "
            f"echo {KERNEL.replace('-', ' ')} > /proc/sys/net/ipv4/ip_local_port_range"
        )

    def open(self, enter: str, leave: str) -> None:
        """Let in, and out, new connections to these ports alone."""
        rules = (f"ct state established,related accept; iif lo accept; tcp dport {{ {enter or 1} }} accept",)
        rules += (f"ct state established,related accept; oif lo accept; tcp dport {{ {leave or 1} }} accept",)
        chains = "\n".join(
            f"chain {hook} {{ type filter hook {hook} priority 0; policy drop; {rule}; }}"
            for hook, rule in zip(("input", "output"), rules, strict=True)
        )
        self.run("nft -f -", f"flush ruleset\ntable inet bough {{\n{chains}\n}}\n")

    def command(self, command: str) -> list[str]:
        """The words of a command in the namespace."""
        enter = ["nsenter", f"--target={self._holder.pid}", "--net", "--uts", "--mount", f"--wdns={self.site}"]
        return [*enter, "bash", "-c", command]

    def run(self, command: str, text: str = "", limit_s: float = 600.0) -> str:
        """What a command prints."""
        done = subprocess.run(
            self.command(command), input=text, text=True, capture_output=True, timeout=limit_s, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: {command}: {done.stderr}")
        return done.stdout

    def start(self, command: str, **variables: str) -> "Started":
        """Start a command, with variables of the environment."""
        return Started(self, command, {"HOME": str(self.home), **variables})

    def processes(self) -> list[int]:
        """All processes in the namespace, but the one that holds it."""
        own, found = os.readlink(f"/proc/{self._holder.pid}/ns/net"), list[int]()
        for each in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(each / "ns/net") == own and int(each.name) != self._holder.pid:
                    found.append(int(each.name))
            except OSError:
                continue
        return found

    def close(self) -> None:
        """End all of its processes."""
        for pid in [*self.processes(), self._holder.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._holder.wait()


class Started:
    """A command on a node, with its output in a file."""

    def __init__(self, node: Node, command: str, variables: dict[str, str]) -> None:
        self.node, self._file = node, tempfile.NamedTemporaryFile("w+", prefix=node.name, suffix=".log")  # noqa: SIM115
        path = os.pathsep.join([str(Path(__file__).parents[1] / "src"), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | variables
        self._process = subprocess.Popen(
            node.command(f"exec {command}"), env=environment, stdout=self._file, stderr=subprocess.STDOUT
        )

    @property
    def output(self) -> str:
        """What it has printed."""
        return Path(self._file.name).read_text()

    def until(self, pattern: str, limit_s: float) -> bool:
        """Wait for a line in its output; whether it came."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end and self._process.poll() is None and not re.search(pattern, self.output):
            time.sleep(0.5)
        return re.search(pattern, self.output) is not None

    def status(self, limit_s: float) -> int:
        """Its exit status; 124 where it was killed because it took too long."""
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return 124


class Nodes:
    """Both nodes, and the checks."""

    def __init__(self, folder: Path, limit_s: float) -> None:
        self.folder, self.limit_s, self.failed = folder, limit_s, 0
        (folder / "site").mkdir()
        hosts, names = folder / "hosts", folder / "resolv.conf"
        hosts.write_text("127.0.0.1 localhost\n10.77.0.1 node1\n10.77.0.2 node2\n")
        names.write_text("")
        self.one, self.two = Node(1, folder), Node(2, folder)
        shell("ip link add bough1 type veth peer name bough2")
        self.one.connect("bough1", hosts, names)
        self.two.connect("bough2", hosts, names)

    def open(self, at_one: str, both: str = "") -> None:
        """Open ports of node 1 to node 2, and ports of each to the other."""
        first = ", ".join(each for each in (at_one, both) if each)
        self.one.open(first, both)
        self.two.open(both, first)

    def check(self, name: str, held: bool, *started: Started) -> None:
        """Print whether something held."""
        print(f"{'held  ' if held else 'FAILED'}  {name}", flush=True)
        if not held:
            self.failed += 1
            for each in started:
                print(f"--- {each.node.name}\n{each.output[-3000:]}", flush=True)

    def torchrun(
        self, command: str, *settings: str, restarts: int = 0, secrets: Sequence[str] = ("s", "s")
    ) -> tuple[Started, Started]:
        """The same command on both nodes."""
        options = f"--nnodes 2 --nproc-per-node 1 --max-restarts {restarts} --rdzv-backend c10d"
        text = (
            f"{sys.executable} -m torch.distributed.run {options} --rdzv-endpoint node1:{RENDEZVOUS} "
            f"-m bough {command} {' '.join(map(shlex.quote, settings))}"
        )
        one, two = (
            node.start(text, BOUGH_SECRET=each) for node, each in zip((self.one, self.two), secrets, strict=True)
        )
        return one, two

    def close(self) -> None:
        """End both."""
        self.one.close()
        self.two.close()


def torchrun(nodes: Nodes) -> None:
    nodes.open(str(RENDEZVOUS), KERNEL)
    ranks = nodes.torchrun("train grpo --on sokoban", "name=ranks", "steps=2", *RUN)
    statuses = [each.status(nodes.limit_s) for each in ranks]
    nodes.check(f"a rank on each node by torchrun: statuses {statuses}", statuses == [0, 0], *ranks)
    nodes.check(f"tokens of both ranks: {tokens(nodes, 'ranks')}", computed(nodes, "ranks"), *ranks)
    place = json.loads((nodes.one.home / "site/runs/ranks/manifest.json").read_text())["places"][-1]
    nodes.check(f"the manifest names the ranks' machines: {place['ranks']}", place["ranks"] == ["node1", "node2"])


def restart(nodes: Nodes) -> None:
    """After `torchrun`."""
    nodes.open(str(RENDEZVOUS), KERNEL)
    ranks = nodes.torchrun("resume runs/ranks", "steps=10", restarts=3)
    ranks[0].until("step 5/", nodes.limit_s)
    for pid in nodes.two.processes():
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"resume" in command and b"torch.distributed.run" not in command:
            os.kill(pid, signal.SIGKILL)
    statuses = [each.status(nodes.limit_s) for each in ranks]
    nodes.check(f"rank 1 killed, all start again: statuses {statuses}", statuses == [0, 0], *ranks)
    nodes.check(f"tokens of both ranks: {tokens(nodes, 'ranks')}", computed(nodes, "ranks"), *ranks)
    ranks = nodes.torchrun("resume runs/ranks", "batch_tasks=8")
    statuses = [each.status(nodes.limit_s) for each in ranks]
    nodes.check(f"a refused setting ends neither node with success: {statuses}", 0 not in statuses, *ranks)


def secret(nodes: Nodes) -> None:
    nodes.open(str(RENDEZVOUS), KERNEL)
    for name, other in (("another", "other"), ("no", "")):
        ranks = nodes.torchrun("train grpo --on sokoban", f"name={name}", *RUN, secrets=("s", other))
        statuses = [each.status(nodes.limit_s) for each in ranks]
        found = "rank 1 of 2: got a message without the run's secret" in ranks[0].output
        nodes.check(f"{name} secret on node 2: statuses {statuses}, named", found and 0 not in statuses, *ranks)


def blocked(nodes: Nodes) -> None:
    nodes.open(str(RENDEZVOUS))
    ranks = nodes.torchrun("train grpo --on sokoban", "name=blocked", *RUN)
    ranks[1].status(nodes.limit_s)
    found = re.search(
        r"rank 1 of 2 on node2: got no connection to torchrun's store at node1:\d+ .*open", ranks[1].output
    )
    nodes.check("ports of the kernel closed: node 2 names host, port and what to open", found is not None, *ranks)
    for pid in nodes.one.processes():
        os.kill(pid, signal.SIGTERM)
    nodes.check(f"SIGTERM ends node 1 meanwhile: status {ranks[0].status(60)}", ranks[0].status(1) not in (0, 124))


def neighbour(nodes: Nodes) -> None:
    """A program on node 2 that sends garbage to each open port of node 1."""
    nodes.open(f"{METRICS}, {BOUGH}", KERNEL)
    run = nodes.one.start(
        f"{sys.executable} -m bough train grpo --on sokoban name=alone steps=6 metrics_port={METRICS} "
        f"{' '.join(map(shlex.quote, RUN))}",
        BOUGH_BIND=nodes.one.address,
    )
    run.until("step 3/", nodes.limit_s)
    scraped = nodes.two.start(f"{sys.executable} -c {shlex.quote(READ)} http://node1:{METRICS}/metrics")
    scraped.status(nodes.limit_s)
    seen = 'bough_step{metric="step",run="alone"}' in scraped.output
    nodes.check("node 2 reads the metrics of a run on node 1", seen, run, scraped)
    garbage(nodes)
    nodes.check("a neighbour's garbage at each open port: the run ends with 0", run.status(nodes.limit_s) == 0, run)
    nodes.open(str(RENDEZVOUS), KERNEL)
    ranks = nodes.torchrun("train grpo --on sokoban", "name=beside", "steps=4", *RUN)
    ranks[0].until("step 2/", nodes.limit_s)
    garbage(nodes)
    statuses = [each.status(nodes.limit_s) for each in ranks]
    nodes.check(f"the same with ranks: statuses {statuses} (a neighbour may stop a run)", statuses[0] != 124, *ranks)


READ = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())"


def garbage(nodes: Nodes) -> None:
    text = nodes.one.run("ss -Hltn")
    for port in sorted({int(found) for found in re.findall(r":(\d+)\s", text)}):
        seed = random.Random(port).randbytes(4096).hex()
        code = f"import socket; socket.create_connection(('node1', {port}), 5).sendall(bytes.fromhex('{seed}'))"
        subprocess.run(nodes.two.command(f'{sys.executable} -c "{code}"'), capture_output=True, check=False)


def server(nodes: Nodes) -> None:
    """After `torchrun`: a policy served on node 1, evaluated from node 2."""
    nodes.open(str(SERVER))
    served = nodes.one.start(
        f"{sys.executable} -m bough serve runs/ranks --host 0.0.0.0 --port {SERVER}", BOUGH_SERVE_KEY="right"
    )
    served.until(str(SERVER), nodes.limit_s)
    for name, key, fits in (("its", "right", True), ("another", "wrong", False)):
        engine = f'OpenAi(model=ranks, base_url="http://node1:{SERVER}/v1", key_env=KEY)'
        evaluated = nodes.two.start(
            f"{sys.executable} -m bough eval --on sokoban --policy {shlex.quote(engine)} evaluation.tasks.count=2",
            KEY=key,
        )
        status = evaluated.status(nodes.limit_s)
        nodes.check(f"an evaluation on node 2 with {name} key: status {status}", (status == 0) == fits, evaluated)
    nodes.open("")
    engine = f'OpenAi(model=ranks, base_url="http://node1:{SERVER}/v1", key_env=KEY, deadline_s=20)'
    evaluated = nodes.two.start(
        f"{sys.executable} -m bough eval --on sokoban --policy {shlex.quote(engine)} evaluation.tasks.count=1",
        KEY="right",
    )
    status = evaluated.status(nodes.limit_s)
    found = f"node1:{SERVER}" in evaluated.output
    nodes.check(f"its port closed: status {status}, names host and port", found and status != 0, evaluated)


def ray(nodes: Nodes) -> None:
    nodes.open(f"{BOUGH}", f"{RAY}, {KERNEL}")
    python = os.environ["RAY_PYTHON"]
    tool, shared = f"{Path(python).parent}/ray", {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    shared |= {"RAY_raylet_start_wait_time_s": "300", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    ports = f"--num-cpus=2 {' '.join(RAY_PORTS)} --object-store-memory=200000000"
    for node, where in ((nodes.one, "--head --port=6379"), (nodes.two, "--address=node1:6379")):
        begun = node.start(f"{tool} start {where} --node-ip-address={node.address} {ports}", **shared)
        nodes.check(f"Ray on {node.name}", begun.status(nodes.limit_s) == 0, begun)
    cluster = Path(__file__).parents[1] / "examples/cluster/ray.toml"
    train = f"{python} -m bough train grpo --on sokoban --cluster {cluster} {' '.join(map(shlex.quote, RUN))} steps=2"
    run = nodes.one.start(
        f"{train} name=cluster",
        BOUGH_PORTS=BOUGH,
        **shared,
    )
    status = run.status(nodes.limit_s)
    nodes.check(f"workers, engines and ranks on both nodes by Ray: status {status}", status == 0, run)
    nodes.check(f"tokens of both ranks: {tokens(nodes, 'cluster')}", computed(nodes, "cluster"), run)
    nodes.open("", f"{RAY}, {KERNEL}")
    run = nodes.one.start(
        f"{train} name=closed",
        BOUGH_PORTS=BOUGH,
        **shared,
    )
    status = run.status(nodes.limit_s)
    found = re.search(r"10\.77\.0\.1:210\d\d", run.output)
    nodes.check(f"BOUGH_PORTS closed: status {status}, names host and port", found is not None and status != 0, run)


CHECKS = {each.__name__: each for each in (torchrun, restart, secret, blocked, neighbour, server, ray)}


def tokens(nodes: Nodes, name: str) -> list[list[float]]:
    """Tokens of each rank in each step; empty for a run that has not begun."""
    file = nodes.one.home / "site/runs" / name / "metrics.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [
        [row[key] for key in sorted(row) if key.startswith("update/tokens/")] for row in rows if row["phase"] == "rl"
    ]


def computed(nodes: Nodes, name: str) -> bool:
    found = tokens(nodes, name)
    return bool(found) and all(len(row) == 2 and min(row) > 0 for row in found)


def shell(command: str) -> None:
    subprocess.run(command.split(), check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="+", choices=list(CHECKS))
    parser.add_argument("--limit-s", type=float, default=900.0, help="longest time of a command, seconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        nodes = Nodes(Path(folder), arguments.limit_s)
        try:
            for name in arguments.checks:
                CHECKS[name](nodes)
        finally:
            nodes.close()
    print(machine())
    sys.exit(min(nodes.failed, 1))


if __name__ == "__main__":
    main()
