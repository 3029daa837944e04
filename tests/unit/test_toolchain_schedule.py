"""Builds run side by side as far as processors and memory go."""

import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from berkelium_lab.toolchain import schedule
from berkelium_lab.toolchain.schedule import Job

SECONDS = 10.0


class Recorder:
    """Jobs that record how many run at once, and in which order they began."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.most = 0
        self._running = 0
        self._lock = threading.Lock()

    def job(self, name: str, memory_mib: int, work: Callable[[], object] = lambda: None) -> Job:
        def recorded() -> None:
            with self._lock:
                self.order.append(name)
                self._running += 1
                self.most = max(self.most, self._running)
            try:
                work()
            finally:
                with self._lock:
                    self._running -= 1

        return Job(name, memory_mib, recorded)


def no_stop() -> None:
    pytest.fail("nothing has failed, so nothing is to be stopped")


def test_jobs_that_fit_into_memory_run_at_once() -> None:
    recorder = Recorder()
    meeting = threading.Barrier(2, timeout=SECONDS)
    jobs = [recorder.job(name, 2000, meeting.wait) for name in ("a", "b")]
    schedule.run(jobs, memory_mib=4000, workers=2, stop=no_stop)
    assert recorder.most == 2


def test_jobs_that_do_not_fit_into_memory_together_run_one_after_the_other_the_hungriest_first() -> None:
    recorder = Recorder()
    jobs = [recorder.job("a", 2000), recorder.job("b", 3000), recorder.job("c", 2500)]
    schedule.run(jobs, memory_mib=4000, workers=3, stop=no_stop)
    assert recorder.order == ["b", "c", "a"]
    assert recorder.most == 1


def test_a_small_job_runs_beside_a_hungry_one_while_the_next_hungry_one_waits() -> None:
    recorder = Recorder()
    meeting = threading.Barrier(2, timeout=SECONDS)
    jobs = [recorder.job("a", 3000, meeting.wait), recorder.job("b", 3000), recorder.job("c", 500, meeting.wait)]
    schedule.run(jobs, memory_mib=4000, workers=3, stop=no_stop)
    assert recorder.order[:2] == ["a", "c"]


def test_a_job_that_needs_more_than_there_is_runs_alone() -> None:
    recorder = Recorder()
    schedule.run([recorder.job("a", 9000), recorder.job("b", 10)], memory_mib=4000, workers=2, stop=no_stop)
    assert recorder.order == ["a", "b"]
    assert recorder.most == 1


def test_no_more_jobs_run_at_once_than_there_are_workers() -> None:
    recorder = Recorder()
    meeting = threading.Barrier(2, timeout=SECONDS)
    jobs = [recorder.job(name, 1, meeting.wait) for name in "abcd"]
    schedule.run(jobs, memory_mib=4000, workers=2, stop=no_stop)
    assert recorder.most == 2


def test_a_failure_stops_the_other_jobs_and_is_raised_when_they_have_ended() -> None:
    recorder = Recorder()
    stopped, ended, begun = threading.Event(), threading.Event(), threading.Event()

    def fail() -> None:
        begun.wait(SECONDS)
        raise ValueError("the linker failed")

    def wait_for_stop() -> None:
        begun.set()
        if stopped.wait(SECONDS):
            ended.set()

    jobs = [recorder.job("a", 2, wait_for_stop), recorder.job("b", 1, fail), recorder.job("c", 1)]
    with pytest.raises(ValueError, match="the linker failed"):
        schedule.run(jobs, memory_mib=3, workers=2, stop=stopped.set)
    assert ended.is_set()
    assert "c" not in recorder.order


def test_a_containers_limit_bounds_the_memory_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{48 << 20}\n")
    (tmp_path / "memory.current").write_text(f"{16 << 20}\n")
    assert schedule.available_memory_mib(tmp_path) == 32


@pytest.mark.parametrize("limit", ["max\n", None])
def test_without_a_containers_limit_the_machines_memory_counts(tmp_path: Path, limit: str | None) -> None:
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
    total = psutil.virtual_memory().total >> 20
    assert 64 < schedule.available_memory_mib(tmp_path) <= total
