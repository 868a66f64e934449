/* SPDX-License-Identifier: BSD-3-Clause */
/* What the components of our BTLs have in common: how they register, publish and are found. */
#ifndef MULTILANE_COMPAT_COMPONENT_H
#define MULTILANE_COMPAT_COMPONENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/compat/btl.h"
#include "common/compat/param.h"
#include "common/lane/attr.h"
#include "opal/mca/base/mca_base_pvar.h"

/* Defines the component of that name, as Open MPI finds it. */
#define COMPONENT_DEFINE(name, register_function, init_function, progress_function)                \
    extern mca_btl_base_component_t mca_btl_##name##_component;                                    \
    __attribute__((visibility("default"))) mca_btl_base_component_t mca_btl_##name##_component = { \
        .btl_version =                                                                             \
            {                                                                                      \
                COMPAT_BTL_BASE_VERSION,                                                           \
                .mca_component_name = #name,                                                       \
                COMPAT_COMPONENT_VERSION,                                                          \
                .mca_register_component_params = (register_function),                              \
            },                                                                                     \
        .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},                                 \
        .btl_init = (init_function),                                                               \
        .btl_progress = (progress_function),                                                       \
    }

/* The body of a component's register function: its own rows, and Open MPI's rows for `module` if
 * that is not null. An Open MPI error code, also where the running Open MPI is not the one that
 * this was built for. */
int component_register(mca_btl_base_component_t *component, const struct param *rows,
                       mca_btl_base_module_t *module);

/* Registers a counter that people read by MPI_T, as TYPE_COMPONENT_NAME: what `read` says of its
 * ctx, `what`; and one whose value lies in memory. */
int component_variable(const mca_base_component_t *component, const char *name, const char *help,
                       mca_base_get_value_fn_t read, const void *what);
int component_counter(const mca_base_component_t *component, const char *name, const char *help,
                      const _Atomic uint64_t *value);

/* An eager message is no longer than any message, and that is from `least` to `most` bytes,
 * whatever the user gave to Open MPI's own parameters. */
void component_limits_clip(mca_btl_base_module_t *module, size_t least, size_t most);

/* Publishes the record, and returns what btl_init does: an array of the modules that `modules`
 * points to, and how many; null, and 0: neither. */
mca_btl_base_module_t **component_offer(const mca_btl_base_component_t *component,
                                        const void *record, size_t bytes, const void *modules,
                                        size_t count, int *offered_count);

/* What `proc` published under the same component, for the caller to free. Null where it published
 * nothing, or a record that does not fit, which is said: a record of another version. */
void *component_record_of(const mca_btl_base_component_t *component, const opal_proc_t *proc,
                          bool (*fits)(const void *record, size_t bytes));

#endif
