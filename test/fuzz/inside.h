/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fuzzer's build of the PML offers to the program that runs it. */
#ifndef TEST_FUZZ_INSIDE_H
#define TEST_FUZZ_INSIDE_H

#include <mpi.h>
#include <stdint.h>

#define FUZZ_SYMBOL "multilane_fuzz"

struct fuzz_report {
    uint64_t failures; /* things that do not hold; each was said */
    uint64_t delivered;
    uint64_t rejected;
    uint64_t completed; /* receives */
};

/* Gives arbitrary headers to the receive callback of this process, rank 0 of `comm`, in the name of
 * the others, of which there are at least two and who do nothing but wait. */
typedef void (*fuzz_function)(MPI_Comm comm, uint64_t seed, uint64_t rounds,
                              struct fuzz_report *report);

#endif
