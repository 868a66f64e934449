/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands before the functions of a window that are given buffers of the program. */
#ifndef OSC_MULTILANE_GUARD_H
#define OSC_MULTILANE_GUARD_H

#include "common/compat/osc.h"

/* Replaces the functions of a new window. Until it is freed, operations with buffers on a device
 * end with MPI_ERR_BUFFER after a sentence, and all others go on as before. */
void guard_begin(struct ompi_win_t *window);

#endif
