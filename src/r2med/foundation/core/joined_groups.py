"""Groups of what belongs together: joining two members joins their groups. Groups only grow."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Member = TypeVar("Member", bound=Hashable)


class JoinedGroups(Generic[Member]):
    """Members in groups. A member that was never joined is a group of its own."""

    def __init__(self) -> None:
        self._above: dict[Member, Member] = {}

    def join(self, one: Member, other: Member) -> None:
        """Put two members, with all that belong to them, into one group. The first of `one` represents it."""
        self._above[self.first(other)] = self.first(one)

    def first(self, member: Member) -> Member:
        """Return the member that represents the group of a member."""
        self._above.setdefault(member, member)
        while self._above[member] != member:
            self._above[member] = self._above[self._above[member]]
            member = self._above[member]
        return member
