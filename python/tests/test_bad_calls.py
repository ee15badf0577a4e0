"""Random calls neither crash nor hang, and their errors are in Python's words.

    CAIRN_CALLS=50 python -m pytest test_bad_calls.py     more of them than the suite runs
"""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("seed", range(int(os.environ.get("CAIRN_CALLS", "2"))))
def test_random_calls_end_in_order_or_in_an_error(seed):
    run = subprocess.run([sys.executable, "-X", "faulthandler", HERE / "calls.py", str(seed), "3000"], capture_output=True, text=True, timeout=200)
    wrong = [line for line in run.stdout.splitlines() if "WRONG" in line]
    assert (run.returncode, wrong) == (0, []), run.stderr[-3000:]
