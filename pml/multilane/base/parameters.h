/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user sets: registered with Open MPI as text, read once and refused if it makes no sense.
 */
#ifndef MULTILANE_PARAMETERS_H
#define MULTILANE_PARAMETERS_H

#include "common/compat/pml.h"
#include "common/model/plan.h"

/* The largest message of eager-short, whatever a lane would take: it is built on the stack. With
 * its headers it still fits vader's fast path, which takes a quarter of its 4 KiB box. */
#define EAGER_SHORT_MAX 936

struct parameters {
    /* As given. */
    int explain;
    const char *explain_file;
    const char *protocol;
    const char *rndv_bias;
    const char *eager_max;
    int eager_lanes;
    int rndv_lanes;
    const char *unexpected_max;
    int failover;
    const char *queued_max;
    int suspect_ms;
    int lost_s;
    const char *lane_attr;
    int progress_thread;
    const char *profile;
    const char *device_code;
    int untested;
    const char *profile_used;  /* shown, not read */
    const char *switch_points; /* likewise */
    const char *device_code_off;

    /* As understood. */
    double bias;
    uint64_t eager_max_bytes; /* 0: as much as unexpected_max allows */
    uint64_t unexpected_max_bytes;
    uint64_t queued_max_bytes;
    struct plan_override overrides[PLAN_OVERRIDES_MAX];
    uint32_t override_count;
};

extern __attribute__((visibility("hidden"))) struct parameters parameters;

int parameters_register(const mca_base_component_t *component);

/* Registers what only ompi_info shows: which profile is used, and where its lanes switch. */
int parameters_register_shown(const mca_base_component_t *component);

/* For what is shown at registration, where nothing is refused yet: the numbers that plans depend
 * on, the defaults' where one makes no sense. */
void parameters_expect(void);

/* OMPI_ERR_BAD_PARAM after a sentence that names the parameter, its value and what it may be. */
int parameters_parse(const mca_base_component_t *component);

#endif
