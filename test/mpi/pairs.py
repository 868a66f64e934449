#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of jobs in which each value of a parameter meets each value of every other parameter once at
least: what goes wrong with two parameters, where each alone is right, is found without all settings.

    test/mpi/pairs.py SM     one job a line: how many ranks, and NAME=VALUE... for the environment

SM is the shared-memory BTL of that Open MPI. A row is the best of some drawn by chance, always the same."""

import itertools
import random
import sys

PML = "OMPI_MCA_pml_multilane_"
SHM = "OMPI_MCA_btl_shm_"
DRAWN = 60  # rows to choose from


def parameters(sm):
    return {
        "ranks": ["2", "3", "5"],
        "OMPI_MCA_btl": ["self,shm", "self,tcp", "self,sock", "self,shm,sock", "self," + sm, f"self,{sm},sock"],
        "OMPI_MCA_mpi_yield_when_idle": ["0", "1"],
        PML + "protocol": ["auto", "eager-copy", "eager-zcopy", "rndv-am", "rndv-get", "rndv-put",
                           "rndv-both"],
        PML + "rndv_bias": ["0.5", "0.99", "2"],
        PML + "eager_max": ["auto", "1000", "1m"],
        PML + "eager_lanes": ["0", "1"],
        PML + "rndv_lanes": ["0", "1"],
        PML + "unexpected_max": ["1m", "256m"],
        PML + "queued_max": ["64k", "1m"],
        PML + "failover": ["0", "1"],
        PML + "hang_s": ["0", "1"],
        PML + "lane_attr": ["", "shm:latency=1e-3", "sock:overhead=1e-4", "shm:bandwidth=1e8"],
        PML + "progress_thread": ["0", "1"],
        PML + "wait": ["auto", "spin", "sleep"],
        PML + "learn": ["0", "1"],
        PML + "profile": ["auto", "none"],
        PML + "explain": ["0", "1", "2"],
        SHM + "single_copy": ["auto", "none"],
        SHM + "ring_bytes": ["auto", "16k", "4m"],
        SHM + "memory_max": ["auto", "4m"],
    }


def pairs_of(row):
    return set(itertools.combinations(sorted(row.items()), 2))


def rows_find(values):
    chance = random.Random(1)
    missing = set()
    for one, other in itertools.combinations(sorted(values), 2):
        missing |= {((one, a), (other, b)) for a in values[one] for b in values[other]}
    while missing:
        rows = []
        for _ in range(DRAWN):
            row = {name: chance.choice(values[name]) for name in values}
            row.update(dict(chance.choice(sorted(missing))))  # each row brings something new
            rows.append(row)
        best = max(rows, key=lambda row: len(pairs_of(row) & missing))
        missing -= pairs_of(best)
        yield best


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: test/mpi/pairs.py SM")
    for row in rows_find(parameters(sys.argv[1])):
        print(row.pop("ranks"), *(f"{name}={value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
