"""Which tokens a grammar allows next, by llguidance."""

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from bough.grammar import Grammar
from bough.version import install

COMPILED = 64
"""Most grammars that are kept compiled."""


class GrammarMatchers:
    """Compiles grammars for the tokens of one model."""

    def __init__(self, tokenizer: str | None, vocab_tokens: int) -> None:
        """Keep the tokenizer; grammars are compiled on first use.

        Args:
            tokenizer: Its `tokenizer.json`; None where the model has none.
            vocab_tokens: V, the tokens of the model.
        """
        self._tokenizer, self._vocab_tokens = tokenizer, vocab_tokens
        self._tokens: dict[tuple[int, ...], Any] = {}
        self._compiled: dict[tuple[Grammar, tuple[int, ...]], Any] = {}

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
            while len(self._compiled) >= COMPILED:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[key] = self._compile(*key)
        own = self._compiled[key].deep_copy()
        if begun and not own.consume_tokens(list(begun)):
            raise ValueError(
                f"Request.grammar: got {len(begun)} tokens that it does not allow at the beginning; need "
                "the beginning of one of its texts"
            )
        return GrammarMatcher(own)

    def _compile(self, grammar: Grammar, stop_tokens: tuple[int, ...]) -> Any:
        module = self._module
        if stop_tokens not in self._tokens:
            if self._tokenizer is None:
                raise ValueError(
                    "Request.grammar: got one for a model whose tokenizer is no tokenizer.json; need a fast tokenizer"
                )
            if not stop_tokens:
                raise ValueError("Request.stop_tokens: got none with a grammar; need one that ends the completion")
            self._tokens[stop_tokens] = module.LLTokenizer(
                self._tokenizer, n_vocab=self._vocab_tokens, eos_token=list(stop_tokens)
            )
        found = module.LLMatcher(
            self._tokens[stop_tokens], module.LLMatcher.grammar_from_lark(grammar.lark), log_level=0
        )
        if found.is_error():
            raise ValueError(
                f"Request.grammar: got {grammar.lark!r:.200}, which can't be read: {found.get_error()}; need "
                "rules in llguidance's syntax, with the rule start"
            )
        return found

    @cached_property
    def _module(self) -> Any:
        try:
            return import_module("llguidance")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "Request.grammar: got one without llguidance, which computes the allowed tokens; do: "
                f"{install('grammar')}, or sample without a grammar"
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
        if self._matcher.is_error():
            raise ValueError(
                f"Request.grammar: got one that can't be followed: {self._matcher.get_error()}; need a smaller one"
            )
        return self._sets.setdefault(found, found)

    def take(self, token: int, allowed: bytes) -> None:
        """Go on after a token that was sampled from `allowed`."""
        self.allowed.append(allowed)
        self._matcher.consume_token(token)
