/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of MPI_T, over Open MPI's own where it has them. */
#include "common/compat/tool_event.h"

#include <stddef.h>

#include "mpi.h"

/* A name that configure of an Open MPI with events defines. */
#ifdef OPAL_MCA_BASE_CB_REQUIRE_NONE

#include "opal/constants.h"
#include "opal/mca/base/mca_base_event.h"
#include "opal/mca/base/mca_base_pvar.h"

/* Its times are those of Open MPI's own events. */
static mca_base_event_source_t *event_source(void)
{
    mca_base_event_source_t *source;
    int index = mca_base_event_source_register("ompi.multilane", "Lanes and peers of pml/multilane",
                                               MCA_BASE_EVENT_SOURCE_ORDERED, 1000000000,
                                               OPAL_COUNT_MAX, NULL, true, NULL);
    if (index < 0 || mca_base_event_source_get_by_index(index, &source) != OPAL_SUCCESS)
        return NULL;
    return source;
}

int compat_event_register(const mca_base_component_t *component, const char *name, const char *help,
                          void **event)
{
    static const mca_base_var_type_t types[] = {
        MCA_BASE_VAR_TYPE_UINT32_T, MCA_BASE_VAR_TYPE_UINT32_T, MCA_BASE_VAR_TYPE_INT32_T};
    static const ptrdiff_t offsets[] = {offsetof(struct compat_event_data, job),
                                        offsetof(struct compat_event_data, rank),
                                        offsetof(struct compat_event_data, lane)};
    mca_base_event_source_t *source = event_source();
    mca_base_event_t *found = NULL;
    *event = NULL;
    if (!source)
        return OPAL_ERR_OUT_OF_RESOURCE;
    int index =
        mca_base_component_event_register(component, name, help, OPAL_INFO_LVL_4, 3, types, offsets,
                                          NULL, MCA_BASE_VAR_BIND_NO_OBJECT, 0, source, NULL);
    if (index < 0)
        return index;
    int rc = mca_base_event_get_by_index(index, &found);
    *event = found;
    return rc;
}

/* Thread-safe: the thread that makes progress may be ours (pml_multilane_progress_thread). */
void compat_event_raise(void *event, const struct compat_event_data *data)
{
    if (event && mca_base_event_active(event))
        mca_base_event_raise_internal(event, NULL, NULL, data,
                                      MCA_BASE_EVENT_CB_REQUIRE_THREAD_SAFE);
}

#else

int compat_event_register(const mca_base_component_t *component, const char *name, const char *help,
                          void **event)
{
    *event = NULL;
    return 0; /* OPAL_SUCCESS */
}

void compat_event_raise(void *event, const struct compat_event_data *data)
{
}

#endif
