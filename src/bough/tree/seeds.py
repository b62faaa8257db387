"""Named seeds: every random choice of a run is a function of the run's seed and the choice's name."""

import hashlib


def derive(*parts: int | str) -> int:
    """Computes a seed below 2**63 from names and numbers, the same on every machine.

    A run keeps no generator state: the seed at step 7 for branch 3 is `derive(seed, "step", 7, 3)`, with or without a
    stop and resume in between.
    """
    # The length prefix separates ("ab", "c") from ("a", "bc"), and the type tag separates 1 from "1".
    text = "".join(f"{type(part).__name__}{len(str(part))}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big") >> 1
