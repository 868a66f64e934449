/* SPDX-License-Identifier: BSD-3-Clause */
/* How this process's collective operations went: what coll/node counts, for the explain report. */
#ifndef MULTILANE_COLLECTIVES_H
#define MULTILANE_COLLECTIVES_H

#include <stdio.h>

#include "multilane/service.h"

/* Empty, as a job begins. */
struct multilane_calls *collectives_begin(void);
void collectives_print(FILE *file);
/* Members of a JSON object. */
void collectives_print_json(FILE *file);

#endif
