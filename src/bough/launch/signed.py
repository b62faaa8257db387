"""Messages with a proof of a secret, which is verified before anything is unpickled."""

import hashlib
import os
import secrets

SECRET = "BOUGH_SECRET"
"""The variable with the secret of processes that torchrun starts; the same on all machines."""

SECRET_BYTES = 32
"""Of a secret, and of the proof at the beginning of a message."""


def given_secret() -> bytes:
    """The secret of `BOUGH_SECRET`; empty without one."""
    text = os.environ.get(SECRET, "")
    return hashlib.blake2b(text.encode(), digest_size=SECRET_BYTES).digest() if text else b""


def signed(secret: bytes, content: bytes) -> bytes:
    """A message with its proof. Without a secret the proof is a checksum."""
    return _proof(secret, content) + content


def verified(secret: bytes, message: bytes) -> bytes:
    """The content of a message.

    Raises:
        PermissionError: when its proof is not that of the secret.
    """
    proof, content = message[:SECRET_BYTES], message[SECRET_BYTES:]
    if not secrets.compare_digest(proof, _proof(secret, content)):
        raise PermissionError(
            "got a message without the run's secret; need one of the run's own processes; look for a program that "
            f"connects to its ports, and under torchrun set the same {SECRET} on all machines"
        )
    return content


def _proof(secret: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(content, key=secret, digest_size=SECRET_BYTES).digest()
