"""Waiting for conditions, and signals that must not cut a moment in two."""

import signal
import threading

import pytest

from berkelium_lab.interrupts import SIGNALS, Interrupts
from berkelium_lab.wait import NotYet, remaining, until


def test_the_first_truthy_result_is_returned() -> None:
    results = iter([None, 0, "", "third time"])
    assert until(lambda: next(results), "anything", 10, interval=0) == "third time"


def test_a_probe_may_say_what_it_saw_instead() -> None:
    def probe() -> bool:
        raise NotYet("2 of 3 ready")

    with pytest.raises(TimeoutError, match=r"^nodes: not after 0 s; last seen: 2 of 3 ready$"):
        until(probe, "nodes", 0)


def test_without_such_words_the_last_result_is_named() -> None:
    with pytest.raises(TimeoutError, match=r"last seen: \[\]$"):
        until(list, "items", 0)


def test_another_exception_ends_the_waiting_at_once() -> None:
    def probe() -> bool:
        raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        until(probe, "anything", 60)


@pytest.mark.parametrize("number", SIGNALS)
def test_each_signal_that_ends_a_command_interrupts_it(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        signal.raise_signal(number)


def test_a_signal_is_put_off_until_the_held_moment_has_passed() -> None:
    passed = []

    def interrupted_twice(interrupts: Interrupts) -> None:
        with interrupts.held():
            with interrupts.held():
                signal.raise_signal(signal.SIGINT)
                passed.append("inner")
            passed.append("outer")

    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            interrupted_twice(interrupts)
        with interrupts.held():
            passed.append("nothing left over")
    assert passed == ["inner", "outer", "nothing left over"]


def test_the_former_handlers_are_back_afterwards() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with Interrupts():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_signal_that_the_caller_ignores_stays_ignored() -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, former)


def test_outside_the_main_thread_no_handler_is_touched() -> None:
    before = signal.getsignal(signal.SIGINT)
    inside = []

    def enter() -> None:
        with Interrupts():
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert inside == [before]


def test_what_remains_is_what_is_still_listed_at_the_end_and_nothing_as_soon_as_nothing_is() -> None:
    lists = [["a", "b"], ["b"], [], ["never asked"]]
    assert remaining(lambda: lists.pop(0), 60, interval=0.01) == []
    assert lists == [["never asked"]]
    assert remaining(lambda: ["b"], 0.05, interval=0.01) == ["b"]
    assert remaining(lambda: ["asked once"], 0) == ["asked once"]
