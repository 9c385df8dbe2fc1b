"""Live progress: one updating line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.status import Status


class Display:
    """Shows steps with the seconds since the start, and the details of the current step."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.console = Console(highlight=False, quiet=quiet, soft_wrap=True)
        self._began = time.monotonic()
        self._status: Status | None = None
        self._title = ""
        self._shown: set[str] = set()

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._began

    def heading(self, text: str) -> None:
        self.console.print(f"\n[bold]{escape(text)}[/bold]")

    def log(self, text: str) -> None:
        """Print one line with the seconds since the start."""
        self.console.print(f"[dim]{self.elapsed_seconds:6.1f} s[/dim]  {escape(text)}")

    def detail(self, text: str) -> None:
        """Show the details of the current step, whose parts are separated by two spaces.

        A terminal shows them in one updating line. Elsewhere each new part is printed as a line.
        """
        if self._status is not None:
            self._status.update(escape(f"{self._title}: {text}"))
            return
        for part in text.split("  "):
            if part not in self._shown:
                self._shown.add(part)
                self.console.print(f"[dim]          {escape(part)}[/dim]")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A long step. Its duration, or its failure, is printed at the end."""
        began = time.monotonic()
        self._title = title
        self._shown.clear()
        if self.console.is_terminal:
            self._status = self.console.status(escape(title))
            self._status.start()
        try:
            yield
        except BaseException as error:
            self._stop()
            end = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self.console.print(f"[red]{self.elapsed_seconds:6.1f} s  {escape(title)}: {end}[/red]")
            raise
        self._stop()
        took = time.monotonic() - began
        self.console.print(
            f"[dim]{self.elapsed_seconds:6.1f} s[/dim]  {escape(title)} [dim]({took:.1f} s)[/dim]"
        )

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
