"""Jobs side by side as far as processors and memory go."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import psutil

MIB = 1 << 20
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Job:
    """Work for a thread and the memory that it needs at its peak."""

    name: str
    memory_mib: int
    work: Callable[[], None]


def available_memory_mib(cgroup: Path = _CGROUP) -> int:
    """Memory that can be had now: the machine's, or what a container's limit (cgroup v2) leaves of it."""
    available = psutil.virtual_memory().available
    try:
        limit = int((cgroup / "memory.max").read_text())
        used = int((cgroup / "memory.current").read_text())
    except (OSError, ValueError):
        return available // MIB
    return min(available, max(limit - used, 0)) // MIB


def run(jobs: Sequence[Job], *, memory_mib: int, workers: int, stop: Callable[[], None]) -> None:
    """Runs all jobs, the hungriest first, at most `workers` at once and within `memory_mib` in sum.

    A job that needs more than `memory_mib` runs alone. When a job fails, or the caller is interrupted, `stop` is
    called, which must make the running jobs end; the first failure is raised once they have.
    """
    waiting = sorted(jobs, key=lambda job: job.memory_mib, reverse=True)
    running: dict[Future[None], Job] = {}
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            while waiting or running:
                while (job := _next(waiting, running.values(), memory_mib, workers)) is not None:
                    waiting.remove(job)
                    running[pool.submit(job.work)] = job
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    future.result()
        except BaseException:
            stop()
            raise


def _next(waiting: Sequence[Job], running: Collection[Job], memory_mib: int, workers: int) -> Job | None:
    if not running:
        return waiting[0] if waiting else None
    if len(running) >= workers:
        return None
    left = memory_mib - sum(job.memory_mib for job in running)
    return next((job for job in waiting if job.memory_mib <= left), None)
