"""What is shown while work goes on."""

import os
import pty
import select
import sys
import threading
import time

import pytest

from relaymodel import progress
from relaymodel.cli import main
from relaymodel.progress import Bar, Clock


@pytest.fixture
def terminal(monkeypatch):
    """A function that puts a terminal in the place of stderr and returns one that reads what was written to it."""
    master, slave = pty.openpty()
    stream = os.fdopen(slave, "w")

    def install():  # in the test itself: pytest replaces stderr between the phases
        monkeypatch.setattr(sys, "stderr", stream)
        return read

    def read():
        stream.flush()
        found = b""
        while select.select([master], [], [], 0.05)[0]:
            found += os.read(master, 10**5)
        return found.decode()

    yield install
    stream.close()
    os.close(master)


def test_a_clock_shows_after_a_while_and_leaves_a_clean_line(terminal, monkeypatch):
    read = terminal()
    monkeypatch.setattr(progress, "PATIENT", 0.01)
    Clock.start("at work")
    Clock.stage("at other work")
    time.sleep(0.1)
    Clock.stop()
    shown = read()
    assert "0 s  at other work" in shown
    assert shown.rpartition("\r")[2] == ""
    assert shown.split("\r")[-2].strip() == ""
    assert not [thread for thread in threading.enumerate() if thread.daemon and thread.is_alive()]


def test_short_work_shows_nothing(terminal, capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENT", 60)
    read = terminal()
    assert main(["influence", "--t", "3"]) == 0
    assert Clock.running is None
    print("end", file=sys.stderr, flush=True)
    assert read() == "end\r\n"


def test_a_bar_takes_the_place_of_the_clock(terminal):
    terminal()
    Clock.start("at work")
    Bar()(1, 2)
    assert Clock.running is None


def test_commands_show_it(terminal, monkeypatch, capsys):
    read = terminal()
    monkeypatch.setattr(progress, "PATIENT", 0.01)
    monkeypatch.setattr("relaymodel.influence", lambda *_: time.sleep(0.2) or 1 / 0)
    assert main(["influence", "--t", "3"]) == 2
    shown = read()
    assert "0 s  relaymodel influence" in shown
    assert shown.endswith("relaymodel: division by zero\r\n")


def test_nothing_is_shown_in_a_file(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENT", 0.01)
    Clock.start("at work")
    assert Clock.running is None
