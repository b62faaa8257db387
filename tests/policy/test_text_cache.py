"""Texts are kept up to a number of bytes, the ones used last."""

from bough.policy.text_cache import TextCache


def test_texts_are_kept_up_to_their_bytes() -> None:
    computed: list[str] = []

    def double(text: str, end: str = "") -> str:
        computed.append(text[:1])
        return 2 * text + end

    texts = TextCache(double, most_bytes=100_000)
    for text in ("a", "b", "a", "c" * 10_000, "d" * 10_000, "a", "e" * 14_000, "a", "c" * 10_000):
        assert texts(text) == 2 * text
        assert texts.kept_bytes <= 100_000
    assert computed == ["a", "b", "c", "d", "e", "c"], "the least recently used is dropped"
    assert texts("f" * 10**6, "x")[-1] == "x", "a text too long to keep"
    assert texts.kept_bytes == 0


def test_the_numbers_of_kept_tokens_count() -> None:
    tokens = TextCache(lambda text: tuple(range(1000, 1000 + len(text))), most_bytes=10**6)
    assert len(tokens("a" * 1000)) == 1000
    assert tokens.kept_bytes > 36 * 1000, "a pointer and an integer each"
