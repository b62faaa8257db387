"""Needs: values, and the walk over the pieces inside a piece."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from bough.needs import (
    CRITIC,
    FORKS,
    ON_POLICY,
    ORACLE,
    Conflicts,
    Estimate,
    Gives,
    Need,
    Needs,
    NeedsError,
    Satisfies,
    annotation,
    conflicts_of,
    estimate,
    gives_of,
    names_of,
    needs_of,
    pieces,
    value_head,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    needs: frozenset[Need] = frozenset()
    inner: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    satisfies: ClassVar[frozenset[Need]] = frozenset({ON_POLICY})
    gives: ClassVar[frozenset[Need]] = frozenset({ORACLE})
    conflicts: ClassVar[frozenset[Need]] = frozenset({FORKS})

    inner: object


class Misspelled:
    @property
    def needs(self) -> frozenset[Need]:
        return self.ned  # type: ignore[attr-defined,no-any-return]


def test_needs_are_equal_by_kind_and_name() -> None:
    assert CRITIC.or_else("another") == CRITIC
    assert CRITIC.or_else("another").remedy == f"{CRITIC.remedy}, or another"
    assert value_head("low") == value_head("low").or_else("another")
    assert len({value_head("low"), value_head("high"), estimate("low"), annotation("low")}) == 4
    assert names_of({estimate("q2"), estimate("q1"), value_head("value")}, Estimate) == ["q1", "q2"]


def test_the_walk_finds_pieces_at_any_depth_with_their_places() -> None:
    deep = Piece(inner=(Piece(), {"not": "walked"}, [Piece(needs=frozenset({CRITIC}))]))
    assert needs_of(deep) == {CRITIC}
    assert {each.place: each.needs for each in pieces(deep, "credit")}["credit.inner[2][0]"] == {CRITIC}


def test_a_wrapper_satisfies_needs_of_the_pieces_inside_it_only() -> None:
    needy = Piece(needs=frozenset({ON_POLICY, CRITIC}))
    assert needs_of(Wrapper(inner=Piece(inner=needy))) == {CRITIC}
    assert needs_of((Wrapper(inner=needy), needy)) == {CRITIC, ON_POLICY}


def test_declarations() -> None:
    wrapper = Wrapper(inner=None)
    assert isinstance(wrapper, Gives)
    assert isinstance(wrapper, Conflicts)
    assert isinstance(wrapper, Satisfies)
    assert isinstance(Piece(), Needs)
    assert (gives_of(wrapper), conflicts_of(wrapper)) == ({ORACLE}, {FORKS})
    assert gives_of(Piece(inner=wrapper)) == conflicts_of(Piece()) == needs_of(wrapper) == frozenset()


@pytest.mark.parametrize("wrong", [{"critic"}, "critic", None, CRITIC], ids=repr)
def test_a_declaration_that_is_no_set_of_needs_is_an_error(wrong: object) -> None:
    with pytest.raises(NeedsError, match=r"Piece\.needs: got .*; need a frozenset of values of bough\.needs"):
        needs_of(Piece(needs=wrong))  # type: ignore[arg-type]


def test_a_typo_inside_a_declaration_is_an_error() -> None:
    with pytest.raises(AttributeError, match="'Misspelled' object has no attribute 'ned'"):
        needs_of(Misspelled())
