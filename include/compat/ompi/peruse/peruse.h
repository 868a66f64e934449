/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for Open MPI's peruse.h, which Debian does not install: the two names that
 * ompi/peruse/peruse-internal.h needs to be read when PERUSE is not built in. */
#ifndef MULTILANE_COMPAT_PERUSE_H
#define MULTILANE_COMPAT_PERUSE_H

#include "ompi_config.h"

#if OMPI_WANT_PERUSE
#error "This Open MPI was built with PERUSE but did not install ompi/peruse/peruse.h"
#endif

typedef struct ompi_peruse_t *peruse_event_h;

enum { PERUSE_ERR_INIT = -1 };

#endif
