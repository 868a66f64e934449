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
    """Without a lock of our own, which the first one would meet."""
    inode = f":{os.fstat(file).st_ino} "
    with open("/proc/locks", encoding="ascii") as locks:
        return not any(inode in lock for lock in locks)


file = drain_file(sys.argv[1])
print("ready", flush=True)
end = time.monotonic() + 20
while is_free(file):
    if time.monotonic() > end:
        sys.exit("the process is not asked")
    time.sleep(0.001)
fcntl.flock(file, fcntl.LOCK_EX)
time.sleep(float(sys.argv[2]))
