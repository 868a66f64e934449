/* SPDX-License-Identifier: BSD-3-Clause */
/* What the PML offers programs that measure it, as multilane-calibrate does: to see its lanes, to
 * force a protocol and lanes while they run, and to read what messages have taken since. */
#ifndef MULTILANE_MEASURE_H
#define MULTILANE_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lane/profile.h"
#include "common/model/protocol.h"

/* The PML exports one constant of type struct multilane_measure under this name, which carries the
 * version of this header; Open MPI opens components RTLD_GLOBAL, so dlsym(RTLD_DEFAULT, name) finds
 * it after MPI_Init. Only programs of the same build use it: `lane_bytes` tells another. Ranks are
 * those of MPI_COMM_WORLD. Every function returns MPI_SUCCESS's 0 or an Open MPI error below it. */
#define MULTILANE_MEASURE_VERSION 8
#define MULTILANE_MEASURE_SYMBOL  "mca_pml_multilane_measure_v8"

#define MULTILANE_MEASURE_PLANNED (-1)
#define MULTILANE_MEASURE_UNTIMED (-2)
#define MULTILANE_MEASURE_TRIED   1

/* The last 15 timed messages of one way and size. */
struct multilane_times {
    uint32_t messages; /* that were timed; fewer than 5 say nothing */
    double seconds;    /* the median */
    double spread_s;   /* of the middle half, the largest less the smallest */
};

/* The lanes to a rank as the model knows them now. */
struct multilane_lanes {
    struct model_lane lanes[MODEL_LANES_MAX];
    uint32_t count;
    enum profile_placement placement; /* of the rank */
};

struct multilane_measure {
    uint32_t version;
    uint32_t lane_bytes; /* sizeof(struct model_lane) */

    /* The version of Open MPI that the component was built for. */
    const char *open_mpi;

    int (*lanes)(int rank, struct multilane_lanes *lanes);

    /* From now on contiguous messages to `rank`, and to every rank with equal lanes, go by
     * `protocol` wherever it can carry them (MULTILANE_MEASURE_PLANNED: as planned), over lanes of
     * `lanes` alone (0: over all). Each that is not empty is timed, whatever the user has set
     * (MULTILANE_MEASURE_UNTIMED: as planned, and none is timed), and what was known of earlier
     * ones is forgotten. No message to these ranks may be under way. */
    int (*force)(int rank, int protocol, uint32_t lanes);

    /* Whether lane `lane` to `rank` carries messages: below 0: not, and `why` begins with a verb,
     * or is empty; MULTILANE_MEASURE_TRIED: its BTL still tries whether it leads there. *bytes:
     * what has gone over it alone, as `force` says, to all ranks with equal lanes. */
    int (*state)(int rank, uint32_t lane, uint64_t *bytes, char *why, size_t room);

    /* The protocol, by its index, that a message of so many bytes would take now. */
    int (*protocol)(int rank, uint64_t bytes);

    /* What contiguous messages of so many bytes, a power of two, have taken since `force`. */
    int (*times)(int rank, uint64_t bytes, struct multilane_times *times);

    /* What plans depend on here beside lanes and buffers. */
    void (*surroundings)(struct model_surroundings *around);

    /* Registers memory with lane `lane` and takes that back: what a caller times. */
    int (*registration)(int rank, uint32_t lane, void *address, size_t bytes);
};

#endif
