"""Fixes the date that chat templates write, so that a run has one prompt on every day."""

from datetime import datetime
from pathlib import Path

CLOCK = "strftime_now"
"""The function of chat templates that formats the present date and time."""

FILE = "template_date.txt"

DIRECTIVES = [f"%{flag}{letter}" for letter in "aAbBcdeHIjklmMpSuUwWxXyYZDFRT" for flag in ("-", "#", "")]
"""What a format may have, "%-d" before "%d"."""


def date_of(folder: Path | None) -> datetime:
    """The date in a run's folder; without one the present date, which is then written there."""
    file = None if folder is None else folder / FILE
    if file is not None and file.is_file():
        try:
            return datetime.fromisoformat(file.read_text().strip())
        except ValueError as error:
            raise ValueError(f"{file}: got no date ({error}); need one such as 2026-11-26T12:00:00") from error
    now = datetime.now().replace(microsecond=0)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{now.isoformat()}\n")
    return now


def with_date(template: str, date: datetime) -> str:
    """A chat template whose clock stands at a date: a macro takes the place of the function."""
    formats = "".join(
        f"|replace('{each}', '{text}')" for each in DIRECTIVES if (text := date.strftime(each)) and "'" not in text
    )
    return f"{{%- macro {CLOCK}(format) -%}}{{{{- format{formats} -}}}}{{%- endmacro %}}\n{template}"
