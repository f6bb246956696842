"""Terminals as they are: plain encodings, readers that go away, closed output, Ctrl-C at an awkward moment."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oldlight.cli import terminal

COMMAND = [sys.executable, "-m", "oldlight"]
SRC = Path(__file__).parents[2] / "src" / "oldlight"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_the_terminal_cannot_show_is_written_in_other_letters(encoding: str) -> None:
    env = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "200"}
    done = subprocess.run([*COMMAND, "list"], capture_output=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode(encoding)
    assert "seen:lambda" in said
    assert "P(Delta >= k)" in said
    assert "?" not in re.sub(r"\[\?\]", "", said)


def test_every_sign_that_the_package_says_has_other_letters() -> None:
    """In the text of commands and of whatever they print: no question mark takes the place of a word."""
    texts = [path.read_text(encoding="utf-8") for path in SRC.rglob("*.py") if path.parent.name != "kernels"]
    signs = {sign for text in texts for sign in text if ord(sign) > 127}
    shown = signs - set("│┃─┏┓┗┛┡┩└┘├┤┬┴┼╇╋")  # frames: the table printer has plain ones of its own
    assert sorted(shown - set(terminal.PLAIN)) == []


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    """As `oldlight list | head -1` does, before the command has begun to write."""
    process = subprocess.Popen([*COMMAND, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read().decode()
    assert process.wait(120) == terminal.NOBODY_READS, said
    assert said == ""


def test_closed_output_is_no_error() -> None:
    command = " ".join([*COMMAND, "list", "--help", ">&-"])
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


SLOW_IMPORT = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "oldlight.cli":
            print("importing", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
from oldlight.__main__ import main
main()
"""


def test_ctrl_c_during_the_import_is_130_without_a_traceback() -> None:
    process = subprocess.Popen([sys.executable, "-c", SLOW_IMPORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"importing"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode() == "Interrupted.\n"


SLOW_WORKER = """
import os, sys, time
from oldlight.workers import Pool

if __name__ != "__main__":  # this file again, as a worker imports it
    open(sys.argv[1] + ".starting", "w").close()
    time.sleep(1.5)

def double(job, report):
    return 2 * job

if __name__ == "__main__":
    try:
        with Pool(double, 2) as pool:
            print([what for kind, _, what in pool.run([1, 2]) if kind == "done"], flush=True)
    except KeyboardInterrupt:
        print("stopped", flush=True)
        sys.exit(130)
"""


def test_ctrl_c_while_a_worker_starts_is_quiet(tmp_path: Path) -> None:
    """The terminal sends the signal to all processes of the group; a worker is still importing then."""
    script, mark = tmp_path / "slow.py", tmp_path / "mark"
    script.write_text(SLOW_WORKER, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(script), str(mark)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    until = time.monotonic() + 60
    while not mark.with_suffix(".starting").exists() and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    said, complaints = process.communicate(timeout=60)
    assert complaints.decode() == ""
    assert (said.decode(), process.returncode) == ("stopped\n", 130)
