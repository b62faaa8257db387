"""Similarity of two sequences of tokens, words or characters."""

from collections.abc import Sequence


def edit_distance(one: Sequence[object], other: Sequence[object]) -> int:
    """The minimum number of insertions, deletions and replacements from one to the other (Levenshtein 1966)."""
    row = list(range(len(other) + 1))
    for i, token in enumerate(one, start=1):
        corner, row[0] = row[0], i
        for j, other_token in enumerate(other, start=1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (token != other_token))
    return row[-1]


def edit_ratio(one: Sequence[object], other: Sequence[object]) -> float:
    """The edit distance over the longer length; 0 for equal sequences.

    The first token of five replaced is 0.2.
    """
    return edit_distance(one, other) / max(len(one), len(other), 1)


def suffix_match(one: Sequence[int], other: Sequence[int]) -> float:
    """The longest suffix of either that occurs in the other, over the longer length; 1 for equal sequences.

    The first token of five replaced is 0.8.
    """
    return max(_longest_suffix(one, other), _longest_suffix(other, one)) / max(len(one), len(other), 1)


def common_subsequence(one: Sequence[object], other: Sequence[object]) -> int:
    """The length of the longest common subsequence: tokens in the same order in both, with any others between."""
    row = [0] * (len(other) + 1)
    for token in one:
        corner = 0
        for j, other_token in enumerate(other, start=1):
            corner, row[j] = row[j], corner + 1 if token == other_token else max(row[j], row[j - 1])
    return row[-1]


def rouge_l(one: Sequence[object], other: Sequence[object]) -> float:
    """ROUGE-L (Lin 2004), F1: twice the longest common subsequence over the sum of the lengths; 1 for equal sequences.

    The first token of five replaced is 0.8.
    """
    return 2 * common_subsequence(one, other) / max(len(one) + len(other), 1)


def _longest_suffix(one: Sequence[int], other: Sequence[int]) -> int:
    best = 0
    for end in range(1, len(other) + 1):
        length = 0
        while length < min(end, len(one)) and one[-1 - length] == other[end - 1 - length]:
            length += 1
        best = max(best, length)
    return best
