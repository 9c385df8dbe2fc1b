"""Two ways to hold a function at a point and let it go on later: greenlets, and threads without them.

Both keep to one rule: either the hub runs or exactly one fiber does, so what runs needs no locks and
happens in one order only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

try:
    import greenlet
except ImportError:
    greenlet = None

HAS_GREENLETS = greenlet is not None


class Fiber(Protocol):
    """A function that can be held."""

    done: bool

    def resume(self) -> None:
        """Called by the hub: let the function run until it parks or ends. Raises what ended it."""
        ...

    def park(self) -> None:
        """Called by the function: hold it, and let the hub go on."""
        ...


class GreenletFiber:
    """On a stack of its own in the hub's thread: about a microsecond for a switch."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.done = False
        self._hub: Any = greenlet.getcurrent()
        self._greenlet: Any = greenlet.greenlet(function)

    def resume(self) -> None:
        self._greenlet.switch()
        self.done = self._greenlet.dead

    def park(self) -> None:
        self._hub.switch()


class ThreadFiber:
    """In a thread of its own: tens of microseconds for a switch, but nothing to install."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.done = False
        self._function = function
        self._error: BaseException | None = None
        self._mine, self._hub = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started = False

    def resume(self) -> None:
        if self._started:
            self._mine.release()
        else:
            self._started = True
            self._thread.start()
        self._hub.acquire()
        if self.done:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def park(self) -> None:
        self._hub.release()
        self._mine.acquire()

    def _run(self) -> None:
        try:
            self._function()
        except BaseException as error:  # handed to the hub
            self._error = error
        finally:
            self.done = True
            self._hub.release()


def make_fiber(function: Callable[[], None], *, threads: bool = False) -> Fiber:
    """A fiber of the cheaper kind there is, or of threads when asked."""
    return ThreadFiber(function) if threads or not HAS_GREENLETS else GreenletFiber(function)
