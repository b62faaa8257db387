"""Which tokens a grammar allows next, by llguidance."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from importlib import import_module
from typing import Any, TypeAlias

from bough.grammar import Grammar
from bough.version import install

COMPILED = 64
"""Most grammars that are kept compiled."""

COMPILED_CHARACTERS = 2**20
"""Most characters of the kept grammars; compiled, one has 150 bytes a character where its schema is large."""

CLIENT_SYMBOLS = 20_000
"""Most symbols of a client's grammar, as llguidance counts them: 0.1 s, 7 MiB, and 10 ms for the tokens of a step.

A thousand properties have fewer. Combinations of a few `anyOf` may have millions.
"""

CLIENT_S = 10.0
"""How long a client's grammar may wait for its compilation, seconds."""

Key: TypeAlias = tuple[Grammar, tuple[int, ...]]
"""A grammar, and the tokens that end a completion."""


class GrammarMatchers:
    """Compiles grammars for the tokens of one model."""

    def __init__(self, tokenizer: str | None, vocab_tokens: int) -> None:
        """Keep the tokenizer; grammars are compiled on first use, those of clients in a thread before.

        Args:
            tokenizer: Its `tokenizer.json`; None where the model has none.
            vocab_tokens: V, the tokens of the model.
        """
        self._tokenizer, self._vocab_tokens = tokenizer, vocab_tokens
        self._tokens: dict[tuple[int, ...], Any] = {}
        self._compiled: dict[Key, Any] = {}
        self._compiling: dict[Key, asyncio.Future[Any]] = {}
        self._waiting: Counter[Key] = Counter()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bough-grammar")

    def start(self, grammar: Grammar, stop_tokens: Sequence[int], begun: Sequence[int]) -> "GrammarMatcher":
        """The matcher of a completion.

        Args:
            grammar: What it may be.
            stop_tokens: End it where the grammar allows an end.
            begun: The tokens that it begins with.

        Raises:
            ModuleNotFoundError: when llguidance is missing.
            ValueError: when the grammar can't be read, the model's tokenizer is unknown, no token ends a completion, or
                the grammar does not allow `begun`.
        """
        key = grammar, tuple(stop_tokens)
        if key not in self._compiled:
            self._keep(key, self._compile(key))
        own = self._compiled[key].deep_copy()
        if begun and not own.consume_tokens(list(begun)):
            raise ValueError(
                f"got {len(begun)} begun tokens that the grammar does not allow at the beginning; need the beginning "
                "of one of its texts"
            )
        return GrammarMatcher(own)

    async def compile(self, grammar: Grammar, stop_tokens: Sequence[int]) -> None:
        """Compile a grammar of a client in a thread, with its first set of tokens; equal ones are compiled once.

        Args:
            grammar: What a completion may be.
            stop_tokens: End it where the grammar allows an end.

        Raises:
            ModuleNotFoundError: when llguidance is missing.
            ValueError: as `start`; when the grammar has more than `CLIENT_SYMBOLS` or is late.
        """
        key = grammar, tuple(stop_tokens)
        if key in self._compiled:
            return
        if key not in self._compiling:
            work = asyncio.get_running_loop().run_in_executor(self._thread, self._compile_bounded, key)
            work.add_done_callback(partial(self._compiled_in_thread, key))
            self._compiling[key] = work
        work = self._compiling[key]
        self._waiting[key] += 1
        try:
            await asyncio.wait_for(asyncio.shield(work), CLIENT_S)
        except TimeoutError:
            raise ValueError(
                f"got a grammar that was not compiled after {CLIENT_S:.0f} s; need a smaller one: send a smaller "
                "schema, or try again"
            ) from None
        finally:
            self._waiting[key] -= 1
            # A grammar that no client waits for any longer need not be compiled.
            if not self._waiting[key]:
                del self._waiting[key]
                work.cancel()
                self._forget(key, work)

    def _compile_bounded(self, key: Key) -> Any:
        found = self._compile(key, self._module.LLParserLimits(max_grammar_size=CLIENT_SYMBOLS))
        # The copies of a matcher have its first set of tokens.
        found.compute_bitmask()
        _check_followed(found)
        return found

    def _compiled_in_thread(self, key: Key, work: "asyncio.Future[Any]") -> None:
        self._forget(key, work)
        if not work.cancelled() and work.exception() is None:
            self._keep(key, work.result())

    def _forget(self, key: Key, work: "asyncio.Future[Any]") -> None:
        """Drop work that has ended, unless the same grammar is compiled again."""
        if self._compiling.get(key) is work:
            del self._compiling[key]

    def _keep(self, key: Key, matcher: Any) -> None:
        """Keep a compiled grammar, the newest in any case."""
        self._compiled[key] = matcher
        characters = sum(len(grammar.lark) for grammar, _ in self._compiled)
        while len(self._compiled) > 1 and (len(self._compiled) > COMPILED or characters > COMPILED_CHARACTERS):
            oldest = next(iter(self._compiled))
            characters -= len(oldest[0].lark)
            del self._compiled[oldest]

    def _compile(self, key: Key, limits: Any = None) -> Any:
        module, (grammar, stop_tokens) = self._module, key
        if stop_tokens not in self._tokens:
            if self._tokenizer is None:
                raise ValueError(
                    "got a grammar for a model whose tokenizer is no tokenizer.json; need a fast tokenizer, or an "
                    "answer without a grammar"
                )
            if not stop_tokens:
                raise ValueError("got a grammar without stop tokens; need one that ends the completion")
            self._tokens[stop_tokens] = module.LLTokenizer(
                self._tokenizer, n_vocab=self._vocab_tokens, eos_token=list(stop_tokens)
            )
        found = module.LLMatcher(
            self._tokens[stop_tokens], module.LLMatcher.grammar_from_lark(grammar.lark), log_level=0, limits=limits
        )
        if found.is_error():
            why = _first_line(found.get_error())
            _, schema, of_schema = why.partition("failed to compile JSON schema: ")
            if schema:
                raise ValueError(
                    f"got a JSON schema that can't be read: {of_schema}; need one that can; change that part of it"
                )
            raise ValueError(
                f"got the grammar {grammar.lark!r:.200}, which can't be read: {why}; need rules in llguidance's "
                "syntax, with the rule start"
            )
        return found

    @cached_property
    def _module(self) -> Any:
        try:
            return import_module("llguidance")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "got a restricted answer (a forced call, a format, a parser with a grammar) without llguidance, which "
                f"computes the allowed tokens; need it; do: {install('grammar')}, or leave the answer free"
            ) from error


class GrammarMatcher:
    """Computes the tokens that may come next in one completion.

    Attributes:
        allowed: For each token so far, the set it was sampled from; equal sets are one object.
    """

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher
        self._sets: dict[bytes, bytes] = {}
        self.allowed: list[bytes] = []

    def next(self) -> bytes:
        """The tokens that may come next: token t is bit t % 8 of byte t // 8.

        Raises:
            ValueError: when the grammar has grown too large for the library.
        """
        found: bytes = self._matcher.compute_bitmask()
        _check_followed(self._matcher)
        return self._sets.setdefault(found, found)

    def take(self, token: int, allowed: bytes) -> None:
        """Go on after a token that was sampled from `allowed`."""
        self.allowed.append(allowed)
        self._matcher.consume_token(token)


def _check_followed(matcher: Any) -> None:
    """Raise for a grammar that has grown too large for the library."""
    if matcher.is_error():
        why = _first_line(matcher.get_error())
        if why == "NoExtensionBias":
            raise ValueError("got a schema or grammar that no text fits; need one that some text fits")
        raise ValueError(f"got a schema or grammar that can't be followed: {why}; need a smaller one")


def _first_line(error: str) -> str:
    """What the library says is wrong, without its state and the grammar below it."""
    return error.partition("\n")[0]
