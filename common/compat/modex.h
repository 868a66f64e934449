/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process publishes for its peers before their first contact, and files removed when a job
 * dies. */
#ifndef MULTILANE_COMPAT_MODEX_H
#define MULTILANE_COMPAT_MODEX_H

#include <stddef.h>
#include <stdint.h>

#include "opal_config.h"
#include "opal/util/proc.h"

/* Publishes a copy of `data` as component NAME of framework TYPE, for every process of any job. No
 * version is part of it: a peer of another version reads the record and says so. */
int modex_send(const char *type, const char *name, const void *data, size_t bytes);

/* What `process` published so; the caller frees *data. Open MPI's error code and NULL where it
 * published nothing. */
int modex_recv(const char *type, const char *name, const opal_process_name_t *process, void **data,
               size_t *bytes);

/* The processes of this job; 1 where there is no runtime that knows. */
uint32_t modex_job_size(void);

/* Asks for `path` to be removed when this process ends, however it ends. An error where there is no
 * runtime to do it (a program started without mpirun). */
int modex_remove_at_exit(const char *path);

#endif
