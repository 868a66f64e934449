# SPDX-License-Identifier: BSD-3-Clause
"""Messages in a program that loads Open MPI where no other library sees it (RTLD_LOCAL), as plugins do; while they
are under way, children begin, write over what they inherited, and end, or run another program.

    dlopened.py LIBMPI ROUNDS"""
import ctypes
import os
import sys

mpi = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_NOW)
SIZES = (251, 5000, 100000, 3000000)


def symbol(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


def number(function):
    value = ctypes.c_int()
    function(symbol("ompi_mpi_comm_world"), ctypes.byref(value))
    return value.value


def pattern(rank, turn, size):
    return bytes((rank * 7 + turn * 3 + at) % 251 for at in range(251)) * (size // 251) + bytes(size % 251)


def child(buffer, runs_other):
    """As soon as it runs, what it writes must not be what the parent sends."""
    pid = os.fork()
    if pid == 0:
        ctypes.memset(buffer, 0, len(buffer))
        if runs_other:
            os.execv("/bin/sh", ["sh", "-c", "exit 0"])
        os._exit(0)
    return pid


def exchange(rank, ranks, turn, size):
    """0 if the right bytes came and both children ended well."""
    world, byte = symbol("ompi_mpi_comm_world"), symbol("ompi_mpi_byte")
    out, into = ctypes.create_string_buffer(pattern(rank, turn, size), size), ctypes.create_string_buffer(size)
    requests = (ctypes.c_void_p * 2)()
    first = ctypes.addressof(requests)
    mpi.MPI_Isend(out, size, byte, (rank + 1) % ranks, 1, world, ctypes.c_void_p(first))
    children = [child(out, runs_other) for runs_other in (False, True)]
    mpi.MPI_Irecv(into, size, byte, (rank - 1) % ranks, 1, world, ctypes.c_void_p(first + ctypes.sizeof(ctypes.c_void_p)))
    mpi.MPI_Waitall(2, requests, None)
    wrong = sum(os.waitpid(pid, 0)[1] != 0 for pid in children)
    return wrong + (into.raw != pattern((rank - 1) % ranks, turn, size))


def main():
    mpi.MPI_Init(None, None)
    rank, ranks = number(mpi.MPI_Comm_rank), number(mpi.MPI_Comm_size)
    wrong = sum(exchange(rank, ranks, turn, size) for turn in range(int(sys.argv[2])) for size in SIZES)
    print(f"rank {rank} of {ranks}: {wrong} wrong", flush=True)
    if wrong:
        mpi.MPI_Abort(symbol("ompi_mpi_comm_world"), 1)
    mpi.MPI_Finalize()


main()
