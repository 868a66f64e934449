#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Takes each system call that the ranks of a job make from them, one at a time, as a container's filter may do:

    test/mpi/refused.py BUILD [--ranks N,...] [--errors NAME,...] [--moments NAME,...] [--btl LIST] [CALL...]

The kernel answers with an error (EPERM, ENOSYS) from the start of a process on, or from the end of MPI_Init on
("later"). Where a job with Multilane then does not end well, the same job runs with ob1, and Multilane must not be
worse: worst is wrong data, then a job that hangs, then one that ends with an error. Without CALLs it takes all that
such a job makes, by strace. It prints a line for each job that did not end well, and ends with 1 where one was worse
than ob1's. All of it takes 12 minutes."""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

LIMIT_S = 20
# Without these no program starts or ends.
NEVER = {"execve", "exit_group", "exit", "rt_sigreturn"}
ORDER = {"well": 0, "error": 1, "hung": 2, "wrong data": 3}  # from good to bad
WRONG_DATA = re.compile(r"^(strided, )?size \d+|^messages were wrong$", re.M)  # of shm_sizes


def numbers_read():
    """{name: number} of this machine's system calls."""
    said = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
                          capture_output=True, text=True, check=True).stdout
    return {name: int(number) for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", said, re.M)}


class Jobs:
    def __init__(self, build, btl):
        with open(f"{build}/test/build-env", encoding="utf-8") as file:
            environment = dict(re.findall(r"^(\w+)='(.*)'$", file.read(), re.M))
        self.build, self.mpirun, self.series = build, environment["mpirun"], environment["ompi_version"]
        self.kinds = {"multilane": btl, "ob1": "self,vader" if self.series.startswith("4.1") else "self,sm"}

    def program(self, name):
        return f"{self.build}/test/mpi/{name}"

    def run(self, pml, ranks, *words):
        """How it ended, a name of ORDER; and what it said."""
        many = ["--oversubscribe"] if self.series.startswith("4.1") else ["--map-by", ":OVERSUBSCRIBE"]
        with tempfile.TemporaryDirectory() as folder:
            job = subprocess.Popen([self.mpirun, "-n", str(ranks), *many, "--mca", "pml", pml, "--mca", "btl",
                                    self.kinds[pml], *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, text=True, errors="replace",
                                   env={**os.environ, "TMPDIR": folder})
            try:
                said, _ = job.communicate(timeout=LIMIT_S)
                if WRONG_DATA.search(said):
                    return "wrong data", said
                return "error" if job.returncode else "well", said
            except subprocess.TimeoutExpired:
                job.terminate()  # mpirun ends its ranks
                try:
                    job.communicate(timeout=5)
                except subprocess.TimeoutExpired:
                    job.kill()
                    job.communicate()
                return "hung", ""

    def refused(self, pml, ranks, moment, number, error):
        sizes = [self.program("shm_sizes"), "9973"]
        if moment == "later":
            return self.run(pml, ranks, *sizes, "later", f"{number}:{error.lower()}")
        return self.run(pml, ranks, self.program("shm_confine"), f"{number}:{error.lower()}", *sizes)

    def calls(self):
        """The names of all system calls that the ranks of a job make."""
        with tempfile.TemporaryDirectory() as folder:
            outcome, said = self.run("multilane", 2, "strace", "-f", "-ff", "-o", f"{folder}/trace",
                                     self.program("shm_sizes"), "9973")
            if outcome != "well":
                sys.exit(f"the job to look at failed:\n{said}")
            text = "".join(open(f"{folder}/{name}", encoding="utf-8", errors="replace").read()
                           for name in os.listdir(folder) if name.startswith("trace"))
        return set(re.findall(r"^(\w+)\(", text, re.M))


def worse(jobs, case):
    """Whether this job was worse than ob1's; prints what it did where it did not end well."""
    name, number, error, moment, ranks = case
    outcome, said = jobs.refused("multilane", ranks, moment, number, error)
    if outcome == "well":
        return False
    expected, _ = jobs.refused("ob1", ranks, moment, number, error)
    is_worse = ORDER[outcome] > ORDER[expected]
    print(f"{'FAIL ' if is_worse else ''}{name} with {error} {'later' if moment == 'later' else 'from the start'}, "
          f"{ranks} ranks: {outcome}, ob1: {expected}", flush=True)
    if is_worse:
        print("\n".join(f"    {line}" for line in said.splitlines()[:12]), flush=True)
    return is_worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("calls", nargs="*", metavar="CALL")
    for name, values in {"ranks": "2,5", "errors": "EPERM,ENOSYS", "moments": "start,later"}.items():
        parser.add_argument(f"--{name}", default=values, type=lambda text: text.split(","))
    parser.add_argument("--btl", default="self,shm")
    asked = parser.parse_intermixed_args()
    jobs, numbers = Jobs(os.path.abspath(asked.build), asked.btl), numbers_read()
    unknown = [name for name in asked.calls if name not in numbers]
    if unknown:
        sys.exit(f"no system call of this machine is called {', '.join(unknown)}")
    calls = sorted((set(asked.calls) or jobs.calls()) - NEVER)
    cases = [(name, numbers[name], error, moment, ranks) for name in calls if name in numbers
             for error in asked.errors for moment in asked.moments for ranks in map(int, asked.ranks)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failures = sum(pool.map(lambda case: worse(jobs, case), cases))
    print(f"{len(cases)} jobs, {len(calls)} calls: {failures} worse than ob1's")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
