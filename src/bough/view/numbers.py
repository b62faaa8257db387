"""Formats numbers for display."""

import math


def percent(share: float) -> str:
    """0.4375 -> "43.8%"."""
    return f"{100 * share:.1f}%"


def points(difference: float) -> str:
    """0.275 -> "+27.5": a difference of shares, in percentage points."""
    return f"{100 * difference:+.1f}"


def short(value: float, digits: int = 3) -> str:
    """About three digits, or more: 0.01234 -> "0.0123", 1234.5 -> "1,234", 0.00001 -> "1.0e-05", 0 -> "0"."""
    size = abs(value)
    if not math.isfinite(value):
        text = str(value)
    elif size >= 1000:
        text = f"{value:,.{max(0, digits - 4)}f}"
    elif size >= 0.001 or size == 0:
        text = f"{value:.{digits}g}"
    else:
        text = f"{value:.{digits - 2}e}"
    return text


def signed(value: float) -> str:
    """0.5 -> "+0.50"; zero has no sign."""
    return f"{value:+.2f}" if round(value, 2) else "0.00"


def duration(seconds: float) -> str:
    """190 -> "3m 10s"; tenths below ten seconds."""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
