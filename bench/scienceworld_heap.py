"""The heap of one live episode of ScienceWorld, by topic: what `EPISODE_MB` of its Java machine rests on.

python bench/scienceworld_heap.py               # all 30 topics, a minute or more
python bench/scienceworld_heap.py boil
"""

import sys
from typing import Any

from bough.worlds.scienceworld.machine import Machine

EPISODES = 4
STEPS = 30


def main() -> None:
    java = Machine(2000)
    try:
        for topic in sys.argv[1:] or java.topics:
            before = heap_mib(java)
            games = [java.load(topic, variation, "easy", gold=False) for variation in range(EPISODES)]
            begun = (heap_mib(java) - before) / EPISODES
            for number in range(EPISODES * STEPS):
                java.run(games[number // STEPS].step, "look around")
            played = (heap_mib(java) - before) / EPISODES
            print(f"{topic:50s} {begun:5.1f} MiB at the start, {played:5.1f} MiB after {STEPS} steps", flush=True)
            del games
    finally:
        java.end()


def heap_mib(java: Machine) -> float:
    """The heap in use after a collection."""
    jvm: Any = java._env._gateway.jvm
    for _ in range(2):
        java.run(jvm.java.lang.System.gc)
    runtime = java.run(jvm.java.lang.Runtime.getRuntime)
    return (java.run(runtime.totalMemory) - java.run(runtime.freeMemory)) / 2**20


if __name__ == "__main__":
    main()
