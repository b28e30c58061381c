"""Signals ask once, insist the second time, and are handed back afterwards."""

import os
import signal
import threading

import pytest

from regard.training.signals import Interrupted, StopNow, StopSignal


def test_the_first_signal_only_asks() -> None:
    with StopSignal() as stop:
        assert stop.requested is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested == signal.SIGTERM


def test_a_second_interrupt_ends_at_once() -> None:
    with StopSignal() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopSignal():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_other_threads_leave_signals_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work() -> None:
        with StopSignal():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_work_that_can_be_repeated_is_left_at_once() -> None:
    with StopSignal() as stop:
        with pytest.raises(StopNow), stop.interruptible():
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(StopNow), stop.interruptible():
            pytest.fail("not even begun once a stop was asked for")


def test_the_message_says_how_to_go_on() -> None:
    error = Interrupted(signal.SIGINT, 41)
    assert error.exit_code == 130
    assert "SIGINT after step 41" in str(error)
    assert "same command" in str(error)
