/* SPDX-License-Identifier: BSD-3-Clause */
/* What differs for a BTL between the series of Open MPI: flags, delivery of a fragment, what
 * its receiver knows of the sender, the name of a peer's host. */
#ifndef MULTILANE_COMPAT_BTL_H
#define MULTILANE_COMPAT_BTL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/compat.h"
#include "common/compat/threads.h"
#include "opal/mca/btl/btl.h"
#include "opal/util/proc.h"

#if COMPAT_SERIES >= 50000
#define COMPAT_BTL_FLAGS_DEVICE_PUT        MCA_BTL_FLAGS_ACCELERATOR_PUT
#define COMPAT_BTL_FLAGS_DEVICE_GET        MCA_BTL_FLAGS_ACCELERATOR_GET
#define COMPAT_BTL_FLAGS_REMOTE_COMPLETION MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION
#define COMPAT_BTL_SAYS_IPC                MCA_BTL_ERROR_FLAGS_ADD_ACCELERATOR_IPC
#else
#define COMPAT_BTL_FLAGS_DEVICE_PUT        MCA_BTL_FLAGS_CUDA_PUT
#define COMPAT_BTL_FLAGS_DEVICE_GET        MCA_BTL_FLAGS_CUDA_GET
#define COMPAT_BTL_FLAGS_REMOTE_COMPLETION 0 /* 4.1 has no way to say it */
#define COMPAT_BTL_SAYS_IPC                MCA_BTL_ERROR_FLAGS_ADD_CUDA_IPC
#endif

/* Declares a function of a BTL's module by the type that Open MPI has for it. */
#define BTL_FUNCTION(kind, name) __typeof__(*(mca_btl_base_module_##kind##_fn_t) 0) name

/* Hands a fragment that came in to the function that was registered for `tag`. The segments need to
 * live only as long as the call. False: no function is, as when the peer runs another PML; the
 * fragment is lost and the caller says so. `endpoint` is for 5.0 and later; 4.1's callback does not
 * name the sender. */
static inline bool compat_btl_deliver(mca_btl_base_module_t *btl,
                                      struct mca_btl_base_endpoint_t *endpoint,
                                      mca_btl_base_tag_t tag, mca_btl_base_segment_t *segments,
                                      size_t segment_count)
{
    const mca_btl_active_message_callback_t *handler = &mca_btl_base_active_message_trigger[tag];

    if (tag >= MCA_BTL_TAG_MAX || handler->cbfunc == NULL)
        return false;
#if COMPAT_SERIES >= 50000
    const mca_btl_base_receive_descriptor_t descriptor = {.endpoint = endpoint,
                                                          .des_segments = segments,
                                                          .des_segment_count = segment_count,
                                                          .tag = tag,
                                                          .cbdata = handler->cbdata};
    handler->cbfunc(btl, &descriptor);
#else
    /* Only this much of it means anything to the receiver, and clearing the rest of its 100 bytes
     * would take longer than a small message does. */
    mca_btl_base_descriptor_t descriptor;
    descriptor.des_segments = segments;
    descriptor.des_segment_count = segment_count;
    handler->cbfunc(btl, tag, &descriptor, handler->cbdata);
#endif
    return true;
}

/* Defines a receive callback `name` whose body has btl, endpoint, segments and segment_count. The
 * endpoint, the sender's, is not told in 4.1: there it is NULL. */
#if COMPAT_SERIES >= 50000
#define COMPAT_SENDER_IS_KNOWN true
#define COMPAT_RECEIVE_ARGUMENTS                                                                   \
    mca_btl_base_module_t *btl, const mca_btl_base_receive_descriptor_t *descriptor
#define COMPAT_RECEIVE_SENDER descriptor->endpoint
#else
#define COMPAT_SENDER_IS_KNOWN false
#define COMPAT_RECEIVE_ARGUMENTS                                                                   \
    mca_btl_base_module_t *btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t *descriptor,     \
        void *data
#define COMPAT_RECEIVE_SENDER NULL
#endif
#define COMPAT_RECEIVE_CALLBACK(name)                                                              \
    static void name##_segments(mca_btl_base_module_t *btl,                                        \
                                struct mca_btl_base_endpoint_t *endpoint,                          \
                                const mca_btl_base_segment_t *segments, size_t segment_count);     \
    static void name(COMPAT_RECEIVE_ARGUMENTS)                                                     \
    {                                                                                              \
        name##_segments(btl, COMPAT_RECEIVE_SENDER, descriptor->des_segments,                      \
                        descriptor->des_segment_count);                                            \
    }                                                                                              \
    static inline void name##_segments(                                                            \
        mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,                      \
        const mca_btl_base_segment_t *segments, size_t segment_count)

struct compat_proc_name {
    char text[200];
};

/* "rank 3 of job 12 on node1", for sentences. */
static inline struct compat_proc_name compat_proc_name(const opal_proc_t *proc)
{
    struct compat_proc_name name;
#if COMPAT_SERIES >= 50000
    char *host = opal_get_proc_hostname(proc), *own = host;
#else
    const char *host = opal_get_proc_hostname(proc);
    char *own = NULL;
#endif
    snprintf(name.text, sizeof(name.text), "rank %u of job %u on %s", proc->proc_name.vpid,
             proc->proc_name.jobid, host ? host : "an unknown host");
    free(own);
    return name;
}

#endif
