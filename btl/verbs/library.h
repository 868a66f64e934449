/* SPDX-License-Identifier: BSD-3-Clause */
/* libibverbs, which is opened where this node may have an RDMA device: with the libraries that it
 * needs, loading it is a tenth of what starting a process costs. */
#ifndef MULTILANE_VERBS_LIBRARY_H
#define MULTILANE_VERBS_LIBRARY_H

#include <stdbool.h>

#include "common/model/error.h"

/* False: the kernel shows no RDMA device, and the process has not loaded libibverbs anyway. */
bool verbs_library_wanted(void);

/* Before any function of libibverbs is called. False: `why` says why not. */
bool verbs_library_open(struct error_text *why);

#endif
