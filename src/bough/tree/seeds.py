"""Seeds by name: every random choice of a run is a function of the run's seed and of what the choice is for."""

import hashlib


def derive(*parts: int | str) -> int:
    """A seed below 2**63 from names and numbers, the same on every machine.

    A run keeps no generator state: what is drawn at step 7 for branch 3 is `derive(seed, "step", 7, 3)`, whether or
    not the run was stopped and resumed in between.
    """
    # The length prefix keeps ("ab", "c") apart from ("a", "bc"), and the type tag keeps 1 apart from "1".
    text = "".join(f"{type(part).__name__}{len(str(part))}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
