#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hold.py PROCESS SECONDS: as a second multilane-top that asks the process right behind the first one."""

import fcntl
import os
import sys
import time


def drain_file(process):
    for number in os.listdir(f"/proc/{process}/fd"):
        path = f"/proc/{process}/fd/{number}"
        if "multilane-drain" in os.readlink(path):
            return os.open(path, os.O_RDWR)
    sys.exit(f"process {process} has no file to be asked by")


def is_free(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(file, fcntl.LOCK_UN)
    return True


file = drain_file(sys.argv[1])
print("ready", flush=True)
end = time.monotonic() + 20
while is_free(file):
    if time.monotonic() > end:
        sys.exit("the process is not asked")
    time.sleep(0.001)
fcntl.flock(file, fcntl.LOCK_EX)
time.sleep(float(sys.argv[2]))
