"""A store that may be unavailable, lose answers, or omit claims; it wraps a real one."""

import dataclasses
from collections.abc import Callable
from typing import Any

from workron.core import errors
from workron.store.api import Store


class UnreliableStore:
    """Passes every call to a store, unless a test has set a fault."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_unavailable = False
        self.error: errors.StoreError = errors.StoreUnreachableError("the store is unavailable")
        self.lost_answers: set[str] = set()
        """Names of calls whose next answer is lost."""
        self.omits_claims = False
        """Whether the next heartbeat lists no claims."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "wait_for_work":
            return self._store.wait_for_work

        async def call(*arguments: Any) -> Any:
            if self.is_unavailable:
                raise self.error
            answer = await getattr(self._store, name)(*arguments)
            if name == "heartbeat" and self.omits_claims:
                self.omits_claims = False
                answer = dataclasses.replace(answer, held=[])
            if name in self.lost_answers:
                self.lost_answers.remove(name)
                raise errors.StoreUnreachableError(f"the answer to {name} was lost")
            return answer

        return call
