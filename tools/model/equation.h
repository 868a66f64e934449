/* SPDX-License-Identifier: BSD-3-Clause */
/* The threshold equation for several lanes: from which size on rendezvous is worth its handshake.
 */
#ifndef TOOLS_MODEL_EQUATION_H
#define TOOLS_MODEL_EQUATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/error.h"
#include "common/model/number.h"
#include "common/model/plan_input.h"

/* Sizes above this are not distinguished: a double no longer counts bytes there with room to spare,
 * and no memory holds such a message. */
#define EQUATION_BYTES_MAX (UINT64_C(1) << 52)

/* The two rendezvous protocols of the equation; they differ in rrc, and where the bytes go. */
enum equation_variant { EQUATION_RNDV_AM, EQUATION_RNDV_GET, EQUATION_VARIANTS };

const char *equation_variant_name(enum equation_variant variant); /* "rndv-am", "rndv-get" */

enum equation_kind {
    EQUATION_AT,     /* rendezvous from `bytes` on */
    EQUATION_ALWAYS, /* rendezvous for every size from 1 byte on */
    EQUATION_NEVER,
    EQUATION_BELOW /* rendezvous up to `bytes`, eager above */
};

const char *equation_kind_name(enum equation_kind kind); /* "at", "always", ... */

/* The sums over the lanes that enter, rounded for people; the decision is made without rounding. */
struct equation_terms {
    double ecost_s, egro_s_byte, ebw_bytes_s, eover_s, elat_s;
    double rcost_s, rgro_s_byte, rbw_bytes_s, rover_s, rlat_s;
    double bias;       /* d */
    double rrc;        /* 0 or 1 */
    double num_s;      /* d*((1+rrc)*rcost + 4*rlat + 3*rover) - ecost - eover */
    double den_s_byte; /* egro + 1/ebw - d*((1+rrc)*rgro + 1/rbw) */
};

/* How a term is reported: its key for programs, its name and unit for people. */
struct equation_term {
    const char *key, *name, *unit;
    size_t offset; /* of a double in struct equation_terms */
};

#define EQUATION_TERMS 14
extern const struct equation_term equation_term_rows[EQUATION_TERMS];

static inline double equation_term_of(const struct equation_terms *terms,
                                      const struct equation_term *row)
{
    return *(const double *) (const void *) ((const char *) terms + row->offset);
}

struct equation_result {
    enum equation_kind kind;
    uint64_t bytes; /* AT: the smallest size; BELOW: the largest; otherwise 0 */
    bool no_lane;   /* NEVER, because no rendezvous lane can do what the variant needs */
    bool beyond;    /* the exact size is above EQUATION_BYTES_MAX: NEVER, or BELOW that bound */
    struct equation_terms terms;
};

/* Solves the equation for messages whose size lies in the range of attributes that holds for
 * `at_bytes` (any size where the lanes have one range only), by the lanes, the groups and the bias
 * of the input. The eager lanes are those whose use has MODEL_USE_EAGER, the rendezvous lanes those
 * with MODEL_USE_RNDV; neither may be empty. Lanes that cannot send, or for rndv-get those that
 * cannot get, do not enter. Capacity groups count as in a plan. False: *error says which lane or
 * value is wrong. */
bool equation_solve(const struct plan_input *input, enum equation_variant variant,
                    uint64_t at_bytes, struct equation_result *result, struct error_text *error);

/* etime and rtime themselves, rounded. */
double equation_eager_time(const struct equation_terms *terms, uint64_t bytes);
double equation_rndv_time(const struct equation_terms *terms, uint64_t bytes);

/* "at 3951429", "always", "never", "below 4096", with the reason where a size is beyond. */
struct words equation_print(const struct equation_result *result);

#endif
