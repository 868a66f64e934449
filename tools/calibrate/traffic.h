/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of multilane-calibrate: rank 0 orders them and sends, the other rank receives. What
 * single ones take is timed by the PML, as messages of any job are. */
#ifndef TOOLS_CALIBRATE_TRAFFIC_H
#define TOOLS_CALIBRATE_TRAFFIC_H

#include "multilane/measure.h"

struct traffic {
    const struct multilane_measure *pml;
    int rank, ranks;
    char *memory; /* of one message */
    uint64_t most_bytes;
};

bool traffic_begin(struct traffic *traffic, uint64_t most_bytes, struct error_text *error);

/* Ranks other than 0: until rank 0 dismisses them. */
void traffic_obey(struct traffic *traffic);
void traffic_dismiss(struct traffic *traffic);

/* Rank 0: how messages to and from `peer` go from now on, as in `force`. False: they cannot. */
bool traffic_force(struct traffic *traffic, int peer, int protocol, uint32_t lanes);

/* Rank 0: so many, one after the other, and what the PML says they took. False: too few were timed.
 */
bool traffic_send(struct traffic *traffic, int peer, uint64_t bytes, int count,
                  struct multilane_times *times);

/* Memory of its own from the system, with its pages: no cache of registrations knows it, and what
 * btl/verbs does not cache, the heap of some systems, it is not. Null: there is none. */
char *memory_new(size_t bytes);
void memory_free(char *memory, size_t bytes);

#endif
