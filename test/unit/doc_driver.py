#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""That test/fake/README.md has a row for every call of the CUDA driver that Multilane or its tests use, and for no
other."""

import os
import re
import sys

TOP = os.environ.get("srcdir", os.path.join(os.path.dirname(__file__), "..", ".."))


def read(*name):
    with open(os.path.join(TOP, *name), encoding="utf-8") as file:
        return file.read()


def main():
    used = set(re.findall(r'F\(\w+, "(cu\w+)"', read("common", "memory", "driver.h")))
    used |= set(re.findall(r'cuda_call_find\(&call, "(cu\w+?)(?:_v2)?"', read("test", "fake", "cuda_calls.h")))
    rows = re.findall(r"^\| ([^|]*) \|", read("test", "fake", "README.md"), re.M)
    told = set(re.findall(r"`(cu\w+)`", " ".join(rows)))
    for name in sorted(used - told):
        print(f"test/fake/README.md has no row for {name}, which is used")
    for name in sorted(told - used):
        print(f"test/fake/README.md has a row for {name}, which is not used")
    if len(used) < 30:
        print(f"common/memory/driver.h names only {len(used)} calls: is it still what it was?")
    return used != told or len(used) < 30


if __name__ == "__main__":
    sys.exit(main())
