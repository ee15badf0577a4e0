"""Programs that end in every way: the right exit status, no `terminate`, no leak told, no process left.

    CAIRN_ENDS=500 python -m pytest test_ends.py     more of them than the suite runs
"""

import os
import random
import signal
import subprocess
import sys

import pytest

import ends

ENDS = int(os.environ.get("CAIRN_ENDS", "16"))
FIRST = int(os.environ.get("CAIRN_ENDS_FROM", "0"))

def processes_of(pid):
    """The ps and workers that the process has started and that still run."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if f"CAIRN_END_OF={pid}".encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def test_a_program_that_imports_in_another_thread_ends_in_order():
    text = """
import threading
def use():
    global cairn
    import cairn
    cairn.exp(1.0).item()
thread = threading.Thread(target=use)
thread.start()
thread.join()
print(cairn.exp(0.0).item())
"""
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "1.0\n", "")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + ENDS))
def test_a_program_ends_in_order(seed):
    drawn = random.Random(seed)
    text, interrupted_at, statuses = ends.program(drawn)
    mark = f"{os.getpid()}-{seed}"
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", text],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "CAIRN_END_OF": mark},
    )
    try:
        if interrupted_at:
            while (line := process.stdout.readline().strip()) != interrupted_at:
                assert line or process.poll() is None, f"{text}\n{process.communicate()[1]}"
            try:
                process.wait(drawn.uniform(0.001, 0.5))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    code = 130 if process.returncode == -signal.SIGINT else process.returncode
    assert code in statuses, f"{text}\n{error}"
    for word in ("terminate", "leak", "Fatal", "Segmentation"):
        assert word not in error, f"{text}\n{error}"
    assert processes_of(mark) == [], text
