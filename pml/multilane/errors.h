/* SPDX-License-Identifier: BSD-3-Clause */
/* When a lane fails: one sentence, and MPI's error handling. */
#ifndef MULTILANE_ERRORS_H
#define MULTILANE_ERRORS_H

#include "common/compat/pml.h"

struct lane;

/* A lane to a known peer failed while doing `what`, with Open MPI's error `rc`. */
void lane_failed(struct lane *lane, const char *what, int rc);

/* A BTL failed toward somebody unknown. */
void btl_failed(mca_btl_base_module_t *btl, const char *what, int rc);

/* What BTLs call. */
void errors_from_btl(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

#endif
