# SPDX-License-Identifier: BSD-3-Clause
"""terminal.py COLUMNS COMMAND...: runs a command on a terminal of that width, and prints what the terminal would
show, without its control codes. Ends as the command does."""
import fcntl
import os
import pty
import re
import struct
import sys
import termios

columns, command = int(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "vt100"
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))
    os.execvp(command[0], command)
shown = b""
try:
    while part := os.read(terminal, 4096):
        shown += part
except OSError:  # it has ended
    pass
print(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", shown.decode(errors="replace")))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
