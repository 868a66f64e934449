/* SPDX-License-Identifier: BSD-3-Clause */
/* What the components of our BTLs have in common; see component.h. */
#include "common/compat/component.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/modex.h"
#include "common/compat/version.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/output.h"

static const char *name_of(const mca_btl_base_component_t *component)
{
    return component->btl_version.mca_component_name;
}

int component_register(mca_btl_base_component_t *component, const struct param *rows,
                       mca_btl_base_module_t *module)
{
    if (!version_accepts_running("btl", name_of(component)))
        return OPAL_ERR_NOT_AVAILABLE;
    int status = param_register(&component->btl_version, rows);
    if (status != OPAL_SUCCESS || !module)
        return status;
    return mca_btl_base_param_register(&component->btl_version, module);
}

static int counter_read(const mca_base_pvar_t *variable, void *value, void *object)
{
    /* Relaxed: a count, which orders nothing. */
    *(unsigned long long *) value =
        atomic_load_explicit((const _Atomic uint64_t *) variable->ctx, memory_order_relaxed);
    return OPAL_SUCCESS;
}

int component_variable(const mca_base_component_t *component, const char *name, const char *help,
                       mca_base_get_value_fn_t read, const void *what)
{
    int index = mca_base_component_pvar_register(
        component, name, help, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read, NULL, NULL,
        (void *) what);

    return index >= 0 ? OPAL_SUCCESS : index;
}

int component_counter(const mca_base_component_t *component, const char *name, const char *help,
                      const _Atomic uint64_t *value)
{
    return component_variable(component, name, help, counter_read, (const void *) value);
}

void component_limits_clip(mca_btl_base_module_t *module, size_t least, size_t most)
{
    size_t *longest = &module->btl_max_send_size;
    size_t *eager[] = {&module->btl_eager_limit, &module->btl_rndv_eager_limit};

    if (*longest < least)
        *longest = least;
    if (*longest > most)
        *longest = most;
    for (size_t i = 0; i < sizeof(eager) / sizeof(eager[0]); i++)
        if (*eager[i] > *longest)
            *eager[i] = *longest;
}

mca_btl_base_module_t **component_offer(const mca_btl_base_component_t *component,
                                        const void *record, size_t bytes, const void *modules,
                                        size_t count, int *offered_count)
{
    mca_btl_base_module_t **offered = calloc(count, sizeof(*offered));

    *offered_count = 0;
    if (!offered || modex_send("btl", name_of(component), record, bytes) != OPAL_SUCCESS) {
        free(offered);
        return NULL;
    }
    memcpy(offered, modules, count * sizeof(*offered));
    *offered_count = (int) count;
    return offered;
}

void *component_record_of(const mca_btl_base_component_t *component, const opal_proc_t *proc,
                          bool (*fits)(const void *record, size_t bytes))
{
    void *record = NULL;
    size_t bytes = 0;

    if (modex_recv("btl", name_of(component), &proc->proc_name, &record, &bytes) != OPAL_SUCCESS)
        return NULL;
    if (fits(record, bytes))
        return record;
    opal_output(0,
                "btl/%s: process %s runs another version of btl/%s; messages to it take another "
                "lane. Install the same version of Multilane for all processes of the job.",
                name_of(component), OPAL_NAME_PRINT(proc->proc_name), name_of(component));
    free(record);
    return NULL;
}
