/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process publishes for its peers before their first contact, and files removed when a job
 * dies. */
#ifndef MULTILANE_COMPAT_MODEX_H
#define MULTILANE_COMPAT_MODEX_H

#include <stddef.h>
#include <stdint.h>

#include "opal_config.h"
#include "opal/mca/mca.h"
#include "opal/util/proc.h"

/* Publishes a copy of `data` under the component's name, for every process of any job. */
int modex_send(const mca_base_component_t *component, const void *data, size_t bytes);

/* What `name` published under the component's name; the caller frees *data. Open MPI's error code
 * and NULL where it published nothing. */
int modex_recv(const mca_base_component_t *component, const opal_process_name_t *name, void **data,
               size_t *bytes);

/* The processes of this job; 1 where there is no runtime that knows. */
uint32_t modex_job_size(void);

/* Asks for `path` to be removed when this process ends, however it ends. An error where there is no
 * runtime to do it (a program started without mpirun). */
int modex_remove_at_exit(const char *path);

#endif
