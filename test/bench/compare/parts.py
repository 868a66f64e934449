# SPDX-License-Identifier: BSD-3-Clause
"""What can be measured: one Part each, with the figures that its program prints."""

import os
from dataclasses import dataclass, field

LOWER, HIGHER = "lower", "higher"
CORES = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    unit: str
    better: str = LOWER
    # what the numbers in the column "size" are
    axis: str = "bytes"

    @property
    def depends_on_placement(self):
        """Times do, on where a host puts the cores; memory and counts do not."""
        return self.unit not in ("KiB", "B/peer", "calls")


@dataclass(frozen=True)
class Part:
    name: str
    about: str
    ranks: tuple
    figures: tuple
    # Sizes where few are asked for; the program has its own full list.
    quick: tuple = ()
    # Extra needs: "calls" and "silent" preload a library, "job" is timed from outside,
    # "witness" is another program, of this project or not.
    kind: str = "bench"
    # What Open MPI is told beside the way, to measure lanes and not what goes around them.
    choice: tuple = ()
    timeout_s: int = 120
    figure_names: frozenset = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "figure_names", frozenset(f.name for f in self.figures))


def one(name, title, unit, better=LOWER, axis="bytes"):
    return (Figure(name, title, unit, better, axis),)


PARTS = (
    Part("oneway", "one-way time by size, half of a round trip", (2,),
         one("oneway_us", "One-way time", "us"), (0, 8, 1024, 65536, 1048576)),
    Part("rate", "messages a second, 64 under way", (2,),
         one("rate_M_per_s", "Message rate, window 64", "M/s", HIGHER), (8, 64, 512, 1024)),
    Part("bandwidth", "bandwidth in one direction, 64 messages under way", (2,),
         one("bandwidth_GB_per_s", "Bandwidth, window 64", "GB/s", HIGHER),
         (65536, 1048576, 4194304)),
    Part("twoway", "bandwidth of both directions together, 64 messages under way each way", (2,),
         one("twoway_GB_per_s", "Two-way bandwidth, window 64", "GB/s", HIGHER),
         (65536, 1048576, 4194304)),
    Part("pairs", "messages a second of many pairs together", tuple(sorted({4, max(4, CORES - CORES % 2)})),
         one("pairs_M_per_s", "Message rate of all pairs, window 64", "M/s", HIGHER), (8, 65536)),
    Part("blocking", "one MPI_Send after the other into one MPI_Recv after the other", (2,),
         one("blocking_us", "A message of a blocking stream", "us"), (8, 1024, 8192, 65536)),
    Part("late", "messages that come before they are asked for", (2,),
         one("late_us", "A message before its receive", "us"), (8, 1024, 8192, 65536)),
    Part("exchange", "both directions in one MPI_Sendrecv", (2,),
         one("exchange_us", "MPI_Sendrecv", "us"), (8, 1024, 65536, 1048576)),
    Part("probed", "one-way time of messages that are probed for first", (2,),
         one("probed_us", "One-way time with MPI_Probe", "us"), (8, 1024)),
    Part("columns", "one-way time of 16 bytes out of every 64", (2,),
         one("columns_us", "One-way time of a matrix column", "us"), (1024, 65536)),
    Part("faces", "one-way time of a face of a cube of 64 x 64 x 64 doubles", (2,),
         one("faces_us", "One-way time of a face", "us", axis="across the dimension")),
    Part("self", "messages of a process to itself", (2,),
         one("self_us", "A message to oneself", "us"), (64, 65536)),
    Part("posted", "one-way time of 8 bytes behind receives that do not match", (2,),
         one("posted_us", "One-way time behind posted receives", "us", axis="receives posted")),
    Part("unexpected", "one-way time of 8 bytes behind messages without a receive", (2,),
         one("unexpected_us", "One-way time behind unexpected messages", "us",
             axis="messages waiting")),
    Part("silent", "a look for messages, all other ranks being silent", (2, 8, 32),
         one("silent_us", "A look among silent peers", "us", axis="ranks"), kind="silent"),
    Part("onesided", "put, get and fetch-and-op, each flushed, on memory that only a lane reaches", (2,),
         one("put_us", "MPI_Put", "us") + one("get_us", "MPI_Get", "us")
         + one("fetch_us", "MPI_Fetch_and_op", "us"), (8, 4096), choice=("--mca", "osc", "rdma")),
    Part("start", "time from mpirun to its end, of a program that only starts", (2, 8, 32, 64),
         one("start_s", "Start and end of a job", "s", axis="ranks"), kind="job"),
    Part("memory", "resident memory of a process before and after its first messages", (2, 8, 64),
         one("memory_before_KiB", "Resident before the first message", "KiB", axis="ranks")
         + one("memory_first_KiB", "Resident after a message to every peer", "KiB", axis="ranks")
         + one("memory_hundred_KiB", "Resident after 100 messages to every peer", "KiB",
               axis="ranks")
         + one("memory_before_own_KiB", "Own share before the first message", "KiB", axis="ranks")
         + one("memory_hundred_own_KiB", "Own share after 100 messages to every peer", "KiB",
               axis="ranks")
         + one("memory_first_B_per_peer", "Added by the first message to each peer", "B/peer",
               axis="ranks")
         + one("memory_hundred_B_per_peer", "Added by 100 messages to each peer", "B/peer",
               axis="ranks")),
    Part("calls", "allocations and locks a small message costs", (2,),
         one("allocations_per_message", "Allocations a message", "calls")
         + one("locks_per_message", "Mutex locks a message", "calls"), kind="calls"),
    Part("alltoall", "MPI_Alltoall by bytes to each rank", (2, 4),
         one("alltoall_us", "MPI_Alltoall", "us"), (8, 4096, 262144)),
    Part("allreduce", "MPI_Allreduce by bytes", (2, 4),
         one("allreduce_us", "MPI_Allreduce", "us"), (8, 4096, 262144)),
    Part("bcast", "MPI_Bcast by bytes, roots in turn", (2, 4),
         one("bcast_us", "MPI_Bcast", "us"), (8, 4096, 262144)),
    Part("barrier", "MPI_Barrier", (2, 4), one("barrier_us", "MPI_Barrier", "us", axis="")),
    Part("ring", "a message through the ring of the shm lane alone, without MPI", (2,),
         one("ring_us", "One-way time of a bare ring", "us"), kind="witness"),
    Part("netpipe", "NetPIPE's own one-way times, an outside witness", (2,),
         one("netpipe_us", "One-way time by NetPIPE", "us"), kind="witness"),
    Part("hpcc", "HPC Challenge's latency and bandwidth test, an outside witness", (2,),
         one("hpcc_pingpong_us", "HPCC ping-pong latency, 8 bytes", "us", axis="")
         + one("hpcc_pingpong_GB_per_s", "HPCC ping-pong bandwidth, 2 MB", "GB/s", HIGHER, axis="")
         + one("hpcc_ring_us", "HPCC random ring latency, 8 bytes", "us", axis="")
         + one("hpcc_ring_GB_per_s", "HPCC random ring bandwidth, 2 MB", "GB/s", HIGHER, axis=""),
         kind="witness", timeout_s=300),
)

BY_NAME = {part.name: part for part in PARTS}
FIGURES = {figure.name: figure for part in PARTS for figure in part.figures}
