"""The last part of a text between tags."""


def last_tagged(text: str, tag: str) -> str | None:
    """Returns the last part between `<tag>` and `</tag>`; None where there is none. Takes linear time.

    Examples:
        >>> last_tagged("<answer>3</answer> or <answer>4</answer>", "answer")
        '4'
    """
    opening, closing = f"<{tag}>", f"</{tag}>"
    found, place = None, 0
    while (begin := text.find(opening, place)) >= 0:
        begin += len(opening)
        end = text.find(closing, begin)
        if end < 0:
            break
        found, place = text[begin:end], end + len(closing)
    return found
