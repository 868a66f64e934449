#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A gate against getting slower, by counts that other work on the machine does not change.

    test/mpi/costs.py BUILD             counts, and ends with 1 where one is above its limit in test/mpi/costs.txt
    test/mpi/costs.py BUILD --write     makes what it counts the new limits
    test/mpi/costs.py --compare COUNTED LIMITS
                                        compares what BUILD/costs.txt has from an earlier run

A limit is a number and how far above it a count may be. It takes 10 s, valgrind and strace."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

LIMITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "costs.txt")
MESSAGES = 100  # SMALL_MESSAGES of costs.c
LOOKS = 16384 + 1000  # LOOKS_BEFORE and LOOKS
# Calls that only wait, as often as the other end lets them.
WAITS = {"sched_yield", "futex", "poll", "ppoll", "select", "epoll_wait", "epoll_pwait", "nanosleep",
         "clock_nanosleep", "restart_syscall"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Runs:
    """Starts the program in jobs of two."""

    def __init__(self, build, folder):
        environment = dict(re.findall(r"^(\w+)='(.*)'$", read(f"{build}/test/build-env"), re.M))
        self.build, self.folder, self.mpirun = build, folder, environment["mpirun"]

    def barriers(self):
        """Changes of processes in ten barriers of 8 ranks on two processors: the least of three jobs."""
        two = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
        least = None
        for _ in range(3):
            said = self.output(["taskset", "-c", two, self.mpirun, "-n", "8", "--oversubscribe", "--bind-to", "none", "--mca",
                                "pml", "multilane", f"{self.build}/test/mpi/costs", "barriers"])
            changes = int(re.search(r"^ten-barriers-changes (\d+)$", said, re.M).group(1))
            least = min(changes, least or changes)
        return least

    def job(self, mca, *wrap):
        """The output of two ranks with these parameters, each started by the words of `wrap`."""
        sent = f"{self.folder}/sent"
        if os.path.exists(sent):
            os.remove(sent)
        words = [word for name, value in mca.items() for word in ("--mca", name, value)]
        return self.output([self.mpirun, "-n", "2", "--oversubscribe", *words, *wrap, f"{self.build}/test/mpi/costs", sent])

    @staticmethod
    def output(command):
        """What the job prints."""
        run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        if run.returncode != 0:
            sys.exit(f"the job failed:\n{run.stdout}{run.stderr}")
        return run.stdout

    def trace(self, mca):
        """Its output, and what strace wrote of each rank."""
        trace = f"{self.folder}/trace"
        said = self.job(mca, "sh", "-c", f'exec strace -o "{trace}.$OMPI_COMM_WORLD_RANK" "$@"', "sh")
        return said, [read(f"{trace}.{rank}") for rank in range(2)]

    def traced(self, mca):
        """Its output, and the system calls of each rank until the first contact ended, marks among them."""
        said, traces = self.trace(mca)
        calls = []
        for trace in traces:
            lines = trace.split("contact ends")[0].splitlines()
            names = ["mark" if "contact begins" in line else line.split("(")[0] for line in lines[:-1]]
            calls.append([name for name in names if re.match(r"\w+$", name) and name not in WAITS])
        return said, calls

    def instructions(self, mca, *functions):
        """Of each rank, in these functions."""
        profile = f"{self.folder}/profile"
        self.job(mca, "valgrind", "--tool=callgrind", "--collect-atstart=no",
                 f"--callgrind-out-file={profile}.%q{{OMPI_COMM_WORLD_RANK}}",
                 *(f"--toggle-collect={function}" for function in functions))
        return [int(re.search(r"^summary: (\d+)", read(f"{profile}.{rank}"), re.M).group(1)) for rank in range(2)]

    def marked(self, mca):
        """Of the rank that has more: the system calls of looks that find nothing, and the writes of round trips."""
        _, traces = self.trace(mca)
        looks, trips = ([trace.split(f"{what} begin")[1].split(f"{what} end")[0] for trace in traces]
                        for what in ("looks", "trips"))
        return max(part.count("\n") - 1 for part in looks), max(len(re.findall(r"\bsend\w+\(", part)) for part in trips)


def lanes_of_default():
    """Parameters by which two runs do the same: nothing that was measured decides how to wait."""
    return {"pml": "multilane", "pml_multilane_profile": "none", "pml_multilane_wait": "spin"}


def lanes(btl):
    return {**lanes_of_default(), "btl": f"self,{btl}"}


def page_faults(said):
    """Of rank 0 in MPI_Init and MPI_Finalize."""
    return int(re.search(r"^page faults: (\d+)$", said, re.M).group(1))


def count(build):
    """{name: number}"""
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(build, folder)
        said, ob1 = runs.traced({"pml": "ob1", "btl": "self,vader"})
        ob1_faults = page_faults(said)
        for btl in ("shm", "tcp"):
            said, calls = runs.traced(lanes(btl))
            for name, value in re.findall(r"^([\w-]+) (\d+)$", said, re.M):
                counts[f"{btl}-{name}"] = int(value)
            counts[f"{btl}-contact-system-calls"] = sum(len(rank) - rank.index("mark") - 1 for rank in calls)
            if btl == "shm":
                # A start that meets the other one half bound looks again, up to three times: the least of three.
                starts = [calls, *(runs.traced(lanes(btl))[1] for _ in range(2))]
                least = min(sum(map(len, start)) for start in starts)
                counts["start-system-calls-beyond-ob1"] = least - sum(map(len, ob1))
                counts["start-page-faults-beyond-ob1"] = page_faults(said) - ob1_faults
        counts["sock-looks-system-calls"], _ = runs.marked({**lanes(""), "btl": "^vader,sm,tcp,ofi,uct,openib"})
        counts["sock-connected-looks-system-calls"], counts["sock-trips-writes"] = runs.marked(lanes("sock"))
        counts["ten-barriers-changes"] = runs.barriers()
        for rank, total in enumerate(runs.instructions(lanes("shm"), "small_messages_send", "small_messages_receive")):
            counts[f"shm-{('send', 'receive')[rank]}-instructions"] = round(total / MESSAGES)
        counts["look-instructions"] = round(max(runs.instructions(lanes_of_default(), "looks_in_vain")) / LOOKS)
    return counts


def rows_read(path):
    """{name: [numbers]}"""
    rows = (line.split() for line in read(path).splitlines() if line and line[0] != "#")
    return {name: [int(number) for number in numbers] for name, *numbers in rows}


def above(counts, limits):
    """How many are above; says so of each."""
    failures = 0
    for name in sorted(counts.keys() | limits.keys()):
        counted, (limit, slack) = counts.get(name, [None])[0], limits.get(name, [0, 0])
        if counted is None or name not in limits:
            verdict = "is counted and limited in one of the two only"
        elif counted > limit + slack:
            verdict = (f"{counted}, and was {limit}: make it less again, or write down that it costs more and why, "
                       "by test/mpi/costs.py BUILD --write and the message of the commit")
        else:
            less = ": less; --write keeps that" if counted < limit - slack else ""
            print(f"{name}: {counted}, was {limit}{less}")
            continue
        failures += 1
        print(f"FAIL {name}: {verdict}")
    return failures


def limits_write(counts):
    """A limit that is there keeps what it allows."""
    lines = []
    for line in read(LIMITS).splitlines():
        name = line.split()[0] if line else ""
        if name in counts:
            line = f"{name} {counts[name][0]} {line.split()[2]}"
        lines.append(line)
    with open(LIMITS, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", metavar="BUILD")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--compare", nargs=2, metavar=("COUNTED", "LIMITS"))
    asked = parser.parse_args()
    if asked.compare:
        return 1 if above(*map(rows_read, asked.compare)) else 0
    if not asked.build:
        parser.error("BUILD is the folder in which configure was run")
    build = os.path.abspath(asked.build)
    with open(f"{build}/costs.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{name} {number}\n" for name, number in count(build).items())
    counts = rows_read(f"{build}/costs.txt")
    if asked.write:
        limits_write(counts)
    return 1 if above(counts, rows_read(LIMITS)) else 0


if __name__ == "__main__":
    sys.exit(main())
