# SPDX-License-Identifier: BSD-3-Clause
"""Starts the programs, one way after the other and round after round, and keeps every figure."""

import csv
import dataclasses
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

FIELDS = ("part", "way", "ranks", "round", "figure", "size", "value", "line_ns")
FIGURE_LINE = re.compile(r"^figure (\S+) (\d+) (\S+)$")


@dataclasses.dataclass(frozen=True)
class Sample:
    part: str
    way: str
    ranks: int
    round: int
    figure: str
    size: int
    value: float
    # what a bare cache line took between two cores just before; nan where it was not measured
    line_ns: float


@dataclasses.dataclass(frozen=True)
class Failure:
    part: str
    way: str
    ranks: int
    why: str


def why_failed(output, status):
    """The last line that says something, for the report."""
    lines = [line.strip() for line in output.split("\n")]
    telling = [line for line in lines if line and not set(line) <= set("-=*#")
               and not line.startswith("figure ")]
    return f"ended with {status}: {telling[-1][:200] if telling else 'without a word'}"


def descendants(pid):
    """Every process below this one. A launcher's ranks have process groups of their own, so that a
    signal to the launcher's group does not reach them."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def job_end(process):
    """Ends a job that hangs, every process of it, whatever the launcher does."""
    below = descendants(process.pid)
    process.terminate()
    try:
        process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        below += descendants(process.pid)
        process.kill()
    for pid in below:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.communicate()


def job_run(command, env, timeout_s, cwd=None):
    """(output, seconds, why it failed or None)."""
    started = time.monotonic()
    with subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            job_end(process)
            return "", timeout_s, f"did not end in {timeout_s} s"
        except BaseException:
            job_end(process)
            raise
    took = time.monotonic() - started
    return output, took, why_failed(output, process.returncode) if process.returncode else None


def netpipe_run(part, way, ranks, cores, wrap):
    """NetPIPE writes bytes, Mbit/s and seconds into a file. 1000 repeats a size, and no sizes beside
    the powers of two and their halves, or it takes minutes."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "np.out")
        command = way.command(ranks, cores, [*wrap, "NPopenmpi", "-p", "0", "-n", "1000",
                                             "-u", "1048576", "-o", out])
        output, _, why = job_run(command, way.environment(), part.timeout_s)
        figures = []
        if why is None:
            with open(out, encoding="utf-8") as file:
                rows = [line.split() for line in file]
            figures = [("netpipe_us", int(row[0]), float(row[2]) * 1e6) for row in rows
                       if len(row) >= 3]
        return figures, why if why or figures else f"no figures in: {output[-200:]}"


HPCC_LINES = {
    "MaxPingPongLatency_usec": ("hpcc_pingpong_us", 8, 1.0),
    "MinPingPongBandwidth_GBytes": ("hpcc_pingpong_GB_per_s", 2000000, 1.0),
    "RandomlyOrderedRingLatency_usec": ("hpcc_ring_us", 8, 1.0),
    "RandomlyOrderedRingBandwidth_GBytes": ("hpcc_ring_GB_per_s", 2000000, 1.0),
}
# HPL's input for a problem too small to matter: only hpcc's latency and bandwidth test is wanted,
# and hpcc runs everything.
HPCC_INPUT = """HPLinpack benchmark input file
made by test/bench/run
HPL.out
8
1
200
1
32
0
1
1
{ranks}
16.0
1
2
1
4
1
2
1
1
1
0
1
0
2
64
0
0
1
8
##### PTRANS
0
200
0
32
"""


def hpcc_run(part, way, ranks, cores, wrap):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="utf-8") as file:
            file.write(HPCC_INPUT.format(ranks=ranks))
        _, _, why = job_run(way.command(ranks, cores, [*wrap, "hpcc"]),
                            way.environment(), part.timeout_s, folder)
        if why is not None:
            return [], why
        with open(os.path.join(folder, "hpccoutf.txt"), encoding="utf-8") as file:
            words = dict(line.strip().split("=", 1) for line in file if line.count("=") == 1)
        return [(figure, size, float(words[name]) * factor)
                for name, (figure, size, factor) in HPCC_LINES.items() if name in words], None


def ring_run(part, way, ranks, cores, wrap):
    output, _, why = job_run([*wrap, way.mpi.ring_bench, *map(str, RING_SIZES)], dict(os.environ),
                             part.timeout_s)
    figures = figures_of(output)
    return figures, why if why or figures else f"no figures in: {output[-200:]}"


RING_SIZES = (8, 64, 1024, 4096, 16384, 65536)
WITNESSES = {"netpipe": (netpipe_run, "NPopenmpi"), "hpcc": (hpcc_run, "hpcc"),
             "ring": (ring_run, None)}


def figures_of(output):
    found = [FIGURE_LINE.match(line) for line in output.split("\n")]
    return [(m.group(1), int(m.group(2)), float(m.group(3))) for m in found if m]


def bench_run(part, way, ranks, cores, wrap, programs, sizes):
    program, preloads = programs[way.mpi.name]
    extra = way.preloaded(preloads[part.kind]) if part.kind in preloads else ()
    if way.mpi.is_openmpi and way.pml != "ucx":
        extra = (*extra, *part.choice)
    command = way.command(ranks, cores, [*wrap, program, part.name, *map(str, sizes)], extra)
    output, took, why = job_run(command, way.environment(), part.timeout_s)
    if why is not None:
        return [], why
    if part.kind == "job":
        return [("start_s", ranks, took)], None
    figures = figures_of(output)
    return figures, None if figures else "printed no figure"


def line_measure(probe):
    try:
        return float(subprocess.run([probe], capture_output=True, text=True, timeout=10,
                                    check=True).stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return math.nan


def can_run(part, way):
    """Whether this part can measure this way at all: the witnesses are built for one MPI."""
    if part.kind != "witness":
        return True
    if part.name == "ring":
        return way.is_ours and way.mpi.ring_bench is not None
    return way.mpi.name == "ompi" and shutil.which(WITNESSES[part.name][1]) is not None


class Session:
    """Samples and failures of one invocation, with a line on the terminal for each job."""

    def __init__(self, programs, probe, cores, wrap, timeout_s, say):
        self.programs, self.cores, self.wrap, self.say = programs, cores, wrap, say
        self.probe = probe
        self.timeout_s = timeout_s
        self.samples, self.failures = [], []

    def one(self, part, way, ranks, round_number, sizes):
        if self.timeout_s:
            part = dataclasses.replace(part, timeout_s=self.timeout_s)
        line_ns = line_measure(self.probe)
        if part.kind == "witness":
            figures, why = WITNESSES[part.name][0](part, way, ranks, self.cores, self.wrap)
        else:
            figures, why = bench_run(part, way, ranks, self.cores, self.wrap, self.programs,
                                     sizes)
        if why is not None:
            self.say(f"{part.name}, {way.name}, {ranks} ranks: {why}")
            self.failures.append(Failure(part.name, way.name, ranks, why))
            return False
        self.samples += [Sample(part.name, way.name, ranks, round_number, figure, size, value,
                                line_ns)
                         for figure, size, value in figures]
        return True

    def part(self, part, ways, ranks_list, rounds, sizes):
        """A B C A B C ...; a way that fails is not started again at this number of ranks."""
        for ranks in ranks_list:
            alive = [way for way in ways if can_run(part, way)]
            for round_number in range(rounds):
                self.say(f"{part.name}, {ranks} ranks, round {round_number + 1} of {rounds}",
                         passing=True)
                # Which way comes first changes, so that no way is always the one after a pause.
                turn = round_number % len(alive) if alive else 0
                for way in alive[turn:] + alive[:turn]:
                    if not self.one(part, way, ranks, round_number, sizes):
                        alive = [other for other in alive if other is not way]


def samples_write(path, samples, append):
    """Appending numbers the rounds on, so that a later session's rounds stay apart."""
    first = 0
    if append and os.path.exists(path):
        first = 1 + max((sample.round for sample in samples_read(path)), default=-1)
    fresh = not (append and os.path.exists(path))
    with open(path, "w" if fresh else "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(FIELDS)
        for s in samples:
            writer.writerow((s.part, s.way, s.ranks, s.round + first, s.figure, s.size,
                             f"{s.value:.9g}", s.line_ns))


def samples_read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return [Sample(row["part"], row["way"], int(row["ranks"]), int(row["round"]),
                       row["figure"], int(row["size"]), float(row["value"]), float(row["line_ns"]))
                for row in csv.DictReader(file)]


def failures_write(path, failures, append):
    with open(path, "a" if append else "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows((f.part, f.way, f.ranks, f.why) for f in failures)


def failures_read(path):
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return [Failure(part, way, int(ranks), why) for part, way, ranks, why in csv.reader(file)]
