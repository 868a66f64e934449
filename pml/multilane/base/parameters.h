/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's parameters: registered with Open MPI, parsed once, refused where they make no
 * sense. */
#ifndef MULTILANE_PARAMETERS_H
#define MULTILANE_PARAMETERS_H

#include "common/compat/param.h"
#include "common/compat/pml.h"
#include "common/model/plan.h"

enum wait_mode {
    WAIT_AUTO, /* sleeps where processes outnumber processors */
    WAIT_SPIN,
    WAIT_SLEEP
};

/* Of which messages there are sums; the same in all processes. */
enum sums { SUMS_OF_NONE, SUMS_OF_SOME /* lanes: by an attribute */, SUMS_OF_ALL };

struct parameters {
    /* As the user wrote them. */
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
    int hang_s;
    const char *blackbox;
    const char *record;
    int verify;
    const char *lane_attr;
    int progress_thread;
    struct param_word wait; /* enum wait_mode */
    const char *profile;
    int learn;
    const char *device_code;
    int device_measure_ms;
    int untested;
    const char *profile_used;  /* only shown by ompi_info */
    const char *switch_points; /* likewise */
    const char *device_code_off;

    /* Parsed. */
    enum sums sums;
    double bias;
    uint64_t eager_max_bytes; /* 0: as much as unexpected_max allows */
    uint64_t unexpected_max_bytes;
    uint64_t queued_max_bytes;
    struct plan_override overrides[PLAN_OVERRIDES_MAX];
    uint32_t override_count;
};

extern __attribute__((visibility("hidden"))) struct parameters parameters;

int parameters_register(const mca_base_component_t *component);

/* Registers the read-only values of ompi_info: which profile is used, and where its lanes
 * switch. */
int parameters_register_shown(const mca_base_component_t *component);

/* For ompi_info, before parameters_parse: takes the numbers that plans need, and the default
 * where one is impossible. */
void parameters_expect(void);

/* Parses and checks all. OMPI_ERR_BAD_PARAM: after a message that names the parameter, its value
 * and what is allowed. */
int parameters_parse(const mca_base_component_t *component);

#endif
