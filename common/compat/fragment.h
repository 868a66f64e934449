/* SPDX-License-Identifier: BSD-3-Clause */
/* What all our BTLs do with messages and lanes in one way. */
#ifndef MULTILANE_COMPAT_FRAGMENT_H
#define MULTILANE_COMPAT_FRAGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/compat/btl.h"
#include "opal/class/opal_free_list.h"
#include "opal/mca/rcache/rcache.h"

/* For sentences that hold for many messages or peers: says this one once. */
#define SAY_ONCE(say, ...)                                                                         \
    do {                                                                                           \
        static _Atomic bool was_said; /* relaxed: it orders nothing */                             \
        if (!atomic_exchange_explicit(&was_said, true, memory_order_relaxed))                      \
            say(__VA_ARGS__);                                                                      \
    } while (0)

/* btl_add_procs. `add` is called for each process but this one, and returns its peer; or null if
 * the module does not lead there, with *status set if that is an error. */
int lane_add_procs(mca_btl_base_module_t *module, size_t count, opal_proc_t **procs,
                   struct mca_btl_base_endpoint_t **peers, struct opal_bitmap_t *reachable,
                   struct mca_btl_base_endpoint_t *(*add)(mca_btl_base_module_t *module,
                                                          opal_proc_t *proc, int *status));

/* btl_register_error of all modules: Open MPI gives each the same function. */
int lane_error_to(mca_btl_base_module_t *module, mca_btl_base_module_error_cb_fn_t callback);
/* Tells that function that the lane to `proc` is lost. Does nothing where `proc` is null, or no
 * function was given. */
void lane_lost(mca_btl_base_module_t *module, opal_proc_t *proc, const char *why);
/* The same where messages that a lane was to return are lost with it: no other lane brings them. */
void lane_messages_lost(mca_btl_base_module_t *module, opal_proc_t *proc, const char *why);

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

/* --- messages, as Open MPI's descriptors, with which a BTL's own struct begins --- */

/* A free list of structs of so many bytes: `at_first` of them now, then `at_once` together; with
 * `rcache` each has `registered_bytes` of registered memory beside. It is to be destructed also
 * where that fails. */
int fragments_open(opal_free_list_t *list, size_t bytes, size_t registered_bytes, int at_first,
                   int at_once, mca_rcache_base_module_t *rcache);

/* The descriptor, just taken from its list, as btl_alloc returns it: `size` bytes at `memory`.
 * `segments`: its own, two of them. */
void fragment_begin(mca_btl_base_descriptor_t *descriptor, mca_btl_base_segment_t *segments,
                    void *memory, size_t size, uint8_t order, uint32_t flags);

/* btl_prepare_src. From `in_place_bytes` on the payload stays where it is, in the second segment,
 * if it need not be packed. */
mca_btl_base_descriptor_t *fragment_prepare(mca_btl_base_module_t *btl,
                                            struct mca_btl_base_endpoint_t *peer,
                                            struct opal_convertor_t *convertor, uint8_t order,
                                            size_t reserve, size_t *size, uint32_t flags,
                                            size_t in_place_bytes);

/* Packs `size` bytes into `room`. False: there are not so many. */
bool fragment_pack(struct opal_convertor_t *convertor, void *room, size_t size);

/* A descriptor with a message of these two parts, which the BTL frees; NULL: no memory, or too few
 * bytes to pack. */
mca_btl_base_descriptor_t *fragment_copy(mca_btl_base_module_t *btl,
                                         struct mca_btl_base_endpoint_t *peer,
                                         struct opal_convertor_t *convertor, const void *header,
                                         size_t header_bytes, size_t payload_bytes);

/* The message has ended, and is freed if that is the BTL's to do; with `notifies` its owner learns
 * it before. With no lock held. */
void fragment_end(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
                  mca_btl_base_descriptor_t *descriptor, bool notifies, int status);

/* --- puts, gets and atomics --- */

/* What a put, get or atomic tells its caller when it ends. */
struct remote_request {
    void *local;
    mca_btl_base_registration_handle_t *local_handle;
    mca_btl_base_rdma_completion_fn_t callback; /* NULL: the caller is not told */
    void *context, *data;
};

/* How the parameters of btl_put, btl_get and those of atomics begin and end, and what they say. */
#define REMOTE_FROM(peer_t)                                                                        \
    mca_btl_base_module_t *btl, peer_t *peer, void *local_address, uint64_t remote_address,        \
        mca_btl_base_registration_handle_t *local_handle,                                          \
        mca_btl_base_registration_handle_t *remote_handle
#define REMOTE_ENDING                                                                              \
    int flags, int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data
#define REMOTE_REQUEST                                                                             \
    ((struct remote_request){local_address, local_handle, callback, context, data})

static inline void remote_request_end(mca_btl_base_module_t *btl,
                                      struct mca_btl_base_endpoint_t *peer,
                                      const struct remote_request *request, int status)
{
    if (request->callback)
        request->callback(btl, peer, request->local, request->local_handle, request->context,
                          request->data, status);
}

#endif
