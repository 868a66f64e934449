/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of some of a route's messages, for the explain report. */
#ifndef MULTILANE_SAMPLES_H
#define MULTILANE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

struct outgoing;
struct route;

#define SAMPLES_KEPT 32

struct sample {
    uint64_t bytes;
    uint64_t ns;
    bool is_answered; /* the time of the receiver's answer is in it, which the plan does not have */
};

/* Written under the lock of sample.c; read at the end. */
struct samples {
    uint32_t taken; /* the last SAMPLES_KEPT of them are kept */
    struct sample kept[SAMPLES_KEPT];
};

/* What sends the messages of routes that are sampled; set once at start, null: none is. */
extern __attribute__((visibility("hidden"))) int (*samples_post)(const struct outgoing *out,
                                                                 const struct route *route);

#endif
