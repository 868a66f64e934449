/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of btl/shm, with the defaults of its parameters. */
#include "btl/shm/shm.h"

struct shm_state shm = {
    .single_copy = {.text = "auto"},
    .ring_bytes_text = "auto",
    .memory_max_text = "auto",
    .segments =
        {[SEGMENT_MEMFD] = {.fd = -1}, [SEGMENT_FILE] = {.fd = -1}, [SEGMENT_JOB] = {.fd = -1}},
};

/* Filled by component.c. */
mca_btl_base_module_t shm_module;
