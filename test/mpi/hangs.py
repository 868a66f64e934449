#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Starts programs that hang, and some that do not, and asks multilane-top --why for the culprit.

    test/mpi/hangs.py BUILD MPIRUN hangs|healthy|across COUNT [mpirun's arguments]

`hangs`: COUNT hangs by seed, in turn of each kind of test/mpi/hang.c; all but one in 25 must be
explained. `healthy`: COUNT programs that go on; none of them may be called hung. `across`, in test/lab/rails:
COUNT hangs of two ranks on each host, which multilane-top --job explains on each host, and a program that
goes on is not hung. Prints a table, with how long each answer took; the exit status is 1 where that does
not hold.
"""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

KINDS = ("no-receive", "wrong-tag", "wrong-communicator", "cycle", "stopped", "computes",
         "collectives", "lost-message", "no-credit", "lock")
SIZES = (4, 3, 8, 2, 16, 5, 32, 6, 64)
ACROSS = ("no-receive", "computes", "wrong-tag", "collectives", "cycle", "stopped", "wrong-communicator",
          "no-credit", "healthy")
MORE = {
    "cycle": ["--mca", "pml_multilane_eager_max", "16k"],
    "no-credit": ["--mca", "pml_multilane_unexpected_max", "256k"],
    "lost-message": ["--mca", "pml_multilane_failover", "0", "--mca", "btl", "self,flaky",
                     "--mca", "btl_flaky_lanes", "1", "--mca", "btl_flaky_seed", "0"],
}
# These hang in the memory of the node (coll/node), which a communicator gets after some barriers.
BARRIERS = {"stopped": 10, "computes": 10}
STARTED_S = 60   # for MPI_Init, on a machine with much else to do
SETTLED_S = 25   # until all ranks are where they hang
LIMIT_S = 2.0    # for one answer; said, and no failure: the machine may be busy


class Case:
    def __init__(self, kind, seed, ranks, barriers=0):
        self.kind, self.seed, self.ranks, self.barriers = kind, seed, ranks, barriers
        self.expected, self.seconds, self.found, self.good, self.why = "", 0.0, "", False, ""


def environment(build, kind):
    changed = dict(os.environ, OMPI_MCA_mpi_yield_when_idle="1")
    if kind == "lost-message":
        path = os.environ.get("OMPI_MCA_mca_base_component_path", "")
        changed["OMPI_MCA_mca_base_component_path"] = f"{build}/test/fake/.libs:{path}"
    return changed


def start(build, mpirun, arguments, case):
    command = [mpirun, "-n", str(case.ranks), "--mca", "pml", "multilane"]
    command += MORE.get(case.kind, []) + arguments
    if case.kind != "lost-message" and "btl" not in arguments:
        command += ["--mca", "btl", "self,shm"]
    if case.barriers:
        command += ["--mca", "pml_multilane_wait", "sleep"]  # as where processors are short
    command += [f"{build}/test/mpi/hang", case.kind, str(case.seed), str(case.barriers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            stdin=subprocess.DEVNULL, env=environment(build, case.kind), start_new_session=True)


def end(job):
    """mpirun ends its ranks; a stopped one needs to go on for that, or a harder signal."""
    job.terminate()
    try:
        job.wait(3)
    except subprocess.TimeoutExpired:
        job.kill()
        job.wait()


def pids_below(parent):
    """mpirun's ranks, so that none is left."""
    found, parents = [], {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                pass
    for pid in parents:
        at = pid
        while at in parents and at != parent:
            at = parents[at]
        if at == parent and pid != parent:
            found.append(pid)
    return found


def kill_all(job):
    ranks = pids_below(job.pid)
    for pid in ranks:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    end(job)


def ask(build, *whom):
    begun = time.monotonic()
    done = subprocess.run([f"{build}/multilane-top", "--why", "--json", *whom],
                          capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if done.returncode == 2:
        return None, seconds, done.stderr.strip()
    return json.loads(done.stdout), seconds, done.stderr.strip()


def culprit_await(job, case):
    """What rank 0 prints once MPI has started."""
    deadline = time.monotonic() + STARTED_S
    while time.monotonic() < deadline:
        line = job.stdout.readline()
        if not line:
            break
        if line.startswith("culprit "):
            case.expected = line.split()[1:]
            return True
        case.why += line
    case.why += "did not start"
    return False


def is_found(report, case):
    """The first cause is of the expected kind, and names the ranks."""
    kind, culprit, other = case.expected
    if not report["causes"]:
        return False
    first = report["causes"][0]
    wanted = {int(culprit)} if kind in ("stopped", "computes", "collectives", "left", "sleeps") else \
        {int(culprit), int(other)}
    case.found = f"{first['kind']} {first['ranks'][:6]}"
    return first["kind"] == kind and wanted <= set(first["ranks"])


def all_name_culprit(report, case):
    """In the memory of the node each one sees who has not come; by messages it waits for a neighbour."""
    culprit = int(case.expected[1])
    peers = [[message["peer"] for wait in rank["waits"] for message in wait["for"]]
             for rank in report["ranks"] if rank["rank"] != culprit]
    return all(named == [culprit] for named in peers)


def hang_try(build, mpirun, arguments, case):
    job = start(build, mpirun, arguments, case)
    try:
        if not culprit_await(job, case):
            return
        deadline = time.monotonic() + SETTLED_S
        while not case.good and time.monotonic() < deadline:
            time.sleep(0.3)  # for the last rank to come to where it hangs
            report, case.seconds, case.why = ask(build, str(job.pid))
            case.good = report is not None and len(report["ranks"]) == case.ranks and \
                is_found(report, case) and (not case.barriers or all_name_culprit(report, case))
    finally:
        kill_all(job)


def host_of(pid):
    """In the lab each host has a namespace of its own."""
    return os.readlink(f"/proc/{pid}/ns/net")


def ranks_by_host():
    """{host: {rank: pid}} of the lab's only job."""
    hosts = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                words = dict(word.partition(b"=")[::2] for word in file.read().split(b"\0"))
            if os.readlink(f"/proc/{pid}/exe").endswith("/test/mpi/hang"):
                hosts.setdefault(host_of(pid), {})[int(words[b"OMPI_COMM_WORLD_RANK"])] = pid
        except (OSError, KeyError):
            pass
    return hosts


def host_tells(build, case, ranks):
    """Asked on one host: the cause, or who does not answer."""
    culprit = int(case.expected[1])
    if case.kind == "healthy":
        report, seconds, case.why = ask(build, "--job", str(min(ranks.values())))
        case.seconds = max(case.seconds, seconds)
        case.found += " no answer" if report is None else " hung" if report["hung"] else " goes on"
        return "goes on" in case.found and "hung" not in case.found
    pid = next(ranks[rank] for rank in sorted(ranks) if rank != culprit)
    report, seconds, case.why = ask(build, "--job", pid)
    case.seconds = max(case.seconds, seconds)
    return report is not None and len(report["ranks"]) == case.ranks and is_found(report, case) and \
        all(cause["kind"] != "lane-down" for cause in report["causes"])


def across_try(build, mpirun, arguments, case):
    job = start(build, mpirun, arguments, case)
    try:
        if not culprit_await(job, case):
            return
        time.sleep(1)  # for the last rank to come to where it hangs
        hosts = ranks_by_host()
        deadline = time.monotonic() + SETTLED_S
        while not case.good and time.monotonic() < deadline:
            case.seconds = 0
            case.good = sum(map(len, hosts.values())) == case.ranks and \
                all(host_tells(build, case, ranks) for ranks in hosts.values())
            if case.kind == "healthy":
                break
    finally:
        kill_all(job)


def healthy_try(build, mpirun, arguments, case):
    job = start(build, mpirun, arguments, case)
    looks = 0
    try:
        if not culprit_await(job, case):
            return
        case.good = True
        while job.poll() is None and looks < 40 and case.good:
            report, case.seconds, _ = ask(build, str(job.pid))
            if report is None:
                break
            looks += 1
            if report["hung"]:
                case.good = False
                case.why = "; ".join(cause["text"] for cause in report["causes"])
        case.found = f"{looks} looks"
        case.good = case.good and looks > 1
    finally:
        kill_all(job)


def cases_of(what, count):
    cases = []
    if what == "across":
        return [Case(ACROSS[seed % len(ACROSS)], seed, 8) for seed in range(1, count + 1)]
    for seed in range(1, count + 1):
        size = SIZES[(seed - 1) // len(KINDS) * 2 % len(SIZES)] if what == "hangs" else \
            SIZES[(seed - 1) % 6]
        kind = KINDS[(seed - 1) % len(KINDS)] if what == "hangs" else "healthy"
        barriers = BARRIERS.get(kind, 0)
        cases.append(Case(kind, seed, max(size, 3) if kind == "no-credit" else size, barriers))
    return cases


def main():
    build, mpirun, what, count = sys.argv[1:5]
    arguments, cases = sys.argv[5:], cases_of(what, int(count))
    attempt = {"hangs": hang_try, "healthy": healthy_try, "across": across_try}[what]
    with ThreadPoolExecutor(max_workers=1 if what == "across" else 3) as pool:
        list(pool.map(lambda case: attempt(build, mpirun, arguments, case), cases))
    print("seed kind                 ranks  answer s  expected                     found")
    for case in cases:
        print(f"{case.seed:4} {case.kind:20} {case.ranks:5} {case.seconds:9.2f}  "
              f"{' '.join(case.expected):28} {case.found}{'' if case.good else '  WRONG ' + case.why}")
    bad = sum(not case.good for case in cases)
    late = sum(case.seconds > LIMIT_S for case in cases)
    print(f"{len(cases) - bad} of {len(cases)} right, {late} took longer than {LIMIT_S:g} s")
    allowed = len(cases) // 25 if what == "hangs" else 0
    return 1 if bad > allowed else 0


if __name__ == "__main__":
    sys.exit(main())
