/* SPDX-License-Identifier: BSD-3-Clause */
/* What a machine and its software are, as far as measured lanes depend on it. */
#ifndef COMMON_LANE_FINGERPRINT_H
#define COMMON_LANE_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/error.h"

#define FINGERPRINT_CHARS 96

struct fingerprint {
    char processor[FINGERPRINT_CHARS];  /* its model */
    char processors[FINGERPRINT_CHARS]; /* how many are on line */
    char kernel[FINGERPRINT_CHARS];
    char open_mpi[FINGERPRINT_CHARS];
    char multilane[FINGERPRINT_CHARS];
};

/* Of the machine that this process runs on, and the Open MPI that the caller says it runs in. */
void fingerprint_take(const char *open_mpi, struct fingerprint *out);

/* Are they of alike machines? If not, *error says where they differ: "its kernel is ..., not ...".
 */
bool fingerprint_matches(const struct fingerprint *of_file, const struct fingerprint *here,
                         struct error_text *error);

/* A number that alike machines share, for the names of files. */
uint64_t fingerprint_number(const struct fingerprint *fingerprint);

#endif
