/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process publishes for its peers before their first contact: Open MPI's macros over PMIx,
 * whose types and status codes changed in 5.0. */
#include "common/compat/modex.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/compat/compat.h"
#include "opal/constants.h"
#include "opal/mca/base/base.h"
#if COMPAT_SERIES >= 50000
#include "opal/mca/pmix/base/base.h"
#include "opal/mca/pmix/pmix-internal.h"
#define CAN_GET true
#else
#include "opal/mca/pmix/pmix.h"
#define CAN_GET                          (opal_pmix.get != NULL)
#define PMIX_GLOBAL                      OPAL_PMIX_GLOBAL
#define PMIX_JOB_SIZE                    OPAL_PMIX_JOB_SIZE
#define PMIX_UINT32                      OPAL_UINT32
#define opal_pmix_convert_status(status) (status)
#define opal_pmix_register_cleanup(...)                                                            \
    (opal_pmix.register_cleanup ? opal_pmix.register_cleanup(__VA_ARGS__) : OPAL_ERR_NOT_SUPPORTED)
#endif

struct modex_key {
    char text[64];
};

static struct modex_key key_of(const char *type, const char *name)
{
    struct modex_key key;

    snprintf(key.text, sizeof(key.text), "multilane.%s.%s", type, name);
    return key;
}

int modex_send(const char *type, const char *name, const void *data, size_t bytes)
{
    struct modex_key key = key_of(type, name);
    int status;

    OPAL_MODEX_SEND_STRING(status, PMIX_GLOBAL, key.text, (void *) data, bytes);
    return opal_pmix_convert_status(status);
}

static int modex_get(const char *type, const char *name, const opal_process_name_t *process,
                     void **data, size_t *bytes)
{
    struct modex_key key = key_of(type, name);
    int status;

    OPAL_MODEX_RECV_STRING(status, key.text, process, (uint8_t **) data, bytes);
    return opal_pmix_convert_status(status);
}

static int job_size_get(const opal_process_name_t *all, uint32_t **size)
{
    int status;

    if (!CAN_GET)
        return OPAL_ERR_NOT_SUPPORTED;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(status, PMIX_JOB_SIZE, all, size, PMIX_UINT32);
    return opal_pmix_convert_status(status);
}

int modex_remove_at_exit(const char *path)
{
    return opal_pmix_register_cleanup((char *) path, false, false, false);
}

int modex_recv(const char *type, const char *name, const opal_process_name_t *process, void **data,
               size_t *bytes)
{
    *data = NULL;
    *bytes = 0;
    int status = modex_get(type, name, process, data, bytes);

    if (status == OPAL_SUCCESS && (*data == NULL || *bytes == 0))
        status = OPAL_ERR_NOT_FOUND;
    if (status != OPAL_SUCCESS) {
        free(*data);
        *data = NULL;
        *bytes = 0;
    }
    return status;
}

uint32_t modex_job_size(void)
{
    const opal_process_name_t all = {.jobid = opal_proc_local_get()->proc_name.jobid,
                                     .vpid = OPAL_VPID_WILDCARD};
    uint32_t found = 1, *size = &found;

    return job_size_get(&all, &size) == OPAL_SUCCESS && found > 0 ? found : 1;
}
