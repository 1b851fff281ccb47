"""What a bench tells while it works: a live table on a terminal, JSON lines elsewhere. Always on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from ..base.words import say_duration
from ..listeners.json_lines import JsonLines

if TYPE_CHECKING:
    from .plan import Plan, PlannedRun
    from .workers import Record, Workers


def tell_on_stderr(line: str) -> None:
    """Tell a line where no result is printed."""
    sys.stderr.write(f"{line}\n")


class Display:
    """Tells nothing."""

    def planned(self, plan: Plan, message: str) -> None: ...

    def queued(self, run: PlannedRun, attempt: int) -> None: ...

    def started(self, run: PlannedRun, attempt: int) -> None: ...

    def retrying(self, record: Record) -> None: ...

    def settled(self, record: Record, workers: Workers) -> None: ...

    def note(self, message: str) -> None: ...

    def tick(self, workers: Workers) -> None: ...

    def end(self) -> None: ...


class Lines(JsonLines, Display):
    """One JSON object per event, for logs and other programs."""

    def __init__(self, stream: Any = None) -> None:
        super().__init__(stream)
        self.told: dict[PlannedRun, int] = {}

    def planned(self, plan, message):
        table = plan.table(lambda run: run.state)
        self._write(event="plan", message=message, counts=plan.counts(), table=table)

    def queued(self, run, attempt):
        self._tell("queued", run, attempt=attempt)

    def started(self, run, attempt):
        self.told[run] = 0
        self._tell("start", run, attempt=attempt)

    def retrying(self, record):
        self._tell("retry", record.run, attempt=record.attempts, error=record.error)

    def settled(self, record, workers):
        left = workers.seconds_left()
        self._tell(
            record.outcome,
            record.run,
            seconds=round(record.seconds, 1),
            settled=workers.settled(),
            total=len(workers.plan.runs),
            eta_seconds=None if left is None else round(left, 1),
            **({"error": record.error, "log": record.log} if record.error else {}),
        )

    def tick(self, workers):
        for working in workers.working:
            job = working.job
            if job.rounds and job.round > self.told[working.run]:
                self.told[working.run] = job.round
                self._tell("round", working.run, round=job.round, rounds=job.rounds, eta_seconds=job.eta)

    def _tell(self, event: str, run: PlannedRun, **fields) -> None:
        config = run.config
        self._write(
            event=event, scenario=config.scenario.name, name=run.label, preset=config.preset, seed=config.seed, **fields
        )


class Live(Display):
    """How many are done, what is at work and until when, and a line that stays for everything that ends."""

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self.console = console or Console(stderr=True)
        # No thread of its own: processes are started from this one (workers.py says why).
        self.live = RichLive(console=self.console, auto_refresh=False, transient=True)
        self.began = self.shown = time.monotonic()

    def planned(self, plan, message):
        from rich.table import Table
        from rich.text import Text

        records = plan.table(lambda run: run.state)
        table = Table(show_edge=False)
        for name in records[0]:
            table.add_column(Text(name))  # a text is no markup: labels have brackets
        for record in records:
            table.add_row(*map(Text, record.values()))
        self.console.print(table)
        self._say(message, "bold")

    def queued(self, run, attempt):
        self.live.start()

    started = queued

    def retrying(self, record):
        self._say(f"again later: {record.run.name}: {record.error}", "yellow")

    def settled(self, record, workers):
        name = f"{record.run.name} ({workers.settled()}/{len(workers.plan.runs)})"
        if record.outcome == "failed":
            self._say(f"failed: {name}: {record.error}", "red")
        elif record.outcome == "elsewhere":
            self._say(f"done by another bench: {name}", "dim")
        else:
            self._say(f"done: {name} in {say_duration(record.seconds)}", "green")

    def note(self, message):
        self._say(message, "yellow")

    def _say(self, text: str, style: str) -> None:
        from rich.text import Text

        self.console.print(Text(text, style), soft_wrap=True)

    def tick(self, workers):
        now = time.monotonic()
        if now - self.shown >= 0.5:
            self.shown = now
            self.live.update(self._table(workers, now), refresh=True)

    def _table(self, workers: Workers, now: float) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        done, total = workers.settled(), len(workers.plan.runs)
        failed, left = workers.outcome.count("failed"), workers.seconds_left()
        words = [f"{done} of {total} runs", say_duration(now - self.began)]
        words += [f"{failed} failed"] if failed else []
        words.append("time left unknown" if left is None else f"about {say_duration(left)} left")
        if workers.elsewhere:
            words.append(f"{len(workers.elsewhere)} in the hands of another process")
        grid = Table.grid(padding=(0, 2))
        for working in workers.working:
            job = working.job
            rounds = "waiting for a place" if job.waiting else "starting"
            rounds = f"round {job.round}/{job.rounds}" if job.rounds else rounds
            eta = f"{say_duration(job.eta)} left" if job.eta is not None else ""
            bar = ProgressBar(total=job.rounds or 1, completed=job.round, width=20)
            grid.add_row(Text(working.run.name), bar, rounds, eta)
        head = Table.grid(padding=(0, 2))
        head.add_row(ProgressBar(total=total, completed=done, width=20), Text(" · ".join(words)))
        return Group(head, grid)

    def end(self):
        self.live.stop()
