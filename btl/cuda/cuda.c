/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of btl/cuda, with the defaults of its parameters. */
#include "btl/cuda/cuda.h"

struct cuda_state cuda = {
    .handles_max = 256,
    .off = "",
};

/* Filled by component.c. */
mca_btl_base_module_t cuda_module;
