"""Numbers of things, as notices have them."""

from bough.units import number_of


def test_one_thing_is_in_the_singular() -> None:
    assert [number_of(count, "engine process") for count in (0, 1, 2.0)] == [
        "0 engine processes",
        "1 engine process",
        "2 engine processes",
    ]
    assert number_of(12_345_678, "step") == "12,345,678 steps"
