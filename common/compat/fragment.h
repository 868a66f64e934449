/* SPDX-License-Identifier: BSD-3-Clause */
/* What all our BTLs do with messages and lanes in one way. */
#ifndef MULTILANE_COMPAT_FRAGMENT_H
#define MULTILANE_COMPAT_FRAGMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/compat/btl.h"

/* btl_register_error of all modules: Open MPI gives each the same function. */
int lane_error_to(mca_btl_base_module_t *module, mca_btl_base_module_error_cb_fn_t callback);
/* Tells that function of a lane to `proc` that is lost; of null, or without one, none is told. */
void lane_lost(mca_btl_base_module_t *module, opal_proc_t *proc, const char *why);

/* A message has a tag that no function here is registered for. */
void fragment_unwanted(const mca_btl_base_module_t *module, mca_btl_base_tag_t tag);

/* Hands a message to the function that is registered for its tag; `endpoint` as in
 * compat_btl_deliver. */
static inline void fragment_deliver(mca_btl_base_module_t *module,
                                    struct mca_btl_base_endpoint_t *endpoint,
                                    mca_btl_base_tag_t tag, void *bytes, size_t length)
{
    mca_btl_base_segment_t segment;

    segment.seg_addr.pval = bytes;
    segment.seg_len = length;
    if (OPAL_UNLIKELY(!compat_btl_deliver(module, endpoint, tag, &segment, 1)))
        fragment_unwanted(module, tag);
}

#endif
