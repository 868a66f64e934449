/* SPDX-License-Identifier: BSD-3-Clause */
/* What all our BTLs do with messages and lanes in one way. */
#include "common/compat/fragment.h"

#include <stdatomic.h>

#include "opal/util/output.h"

static mca_btl_base_module_error_cb_fn_t error_callback;

int lane_error_to(mca_btl_base_module_t *module, mca_btl_base_module_error_cb_fn_t callback)
{
    (void) module;
    error_callback = callback;
    return OPAL_SUCCESS;
}

void lane_lost(mca_btl_base_module_t *module, opal_proc_t *proc, const char *why)
{
    if (error_callback && proc)
        error_callback(module, 0, proc, (char *) why); /* which only reads it */
}

__attribute__((noinline)) void fragment_unwanted(const mca_btl_base_module_t *module,
                                                 mca_btl_base_tag_t tag)
{
    static _Atomic bool said; /* relaxed: it orders nothing */

    if (!atomic_exchange_explicit(&said, true, memory_order_relaxed))
        opal_output(0,
                    "btl/%s: a message came with tag %u, which no callback is registered for; it "
                    "and others like it are dropped. Do all processes use the same pml?",
                    module->btl_component->btl_version.mca_component_name, tag);
}
