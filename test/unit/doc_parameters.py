#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""That the tables of doc/parameters.md are those of the parameters that this build registers."""

import os
import subprocess
import sys

TOP = os.environ.get("srcdir", os.path.join(os.path.dirname(__file__), "..", ".."))

if __name__ == "__main__":
    sys.exit(subprocess.run([sys.executable, os.path.join(TOP, "doc", "parameters.py"), "--check",
                             *(sys.argv[1:] or ["."])], check=False).returncode)
