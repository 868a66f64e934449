/* SPDX-License-Identifier: BSD-3-Clause */
/* What all our BTLs do with messages and lanes in one way. */
#include "common/compat/fragment.h"

#include <string.h>

#include "common/compat/tsan.h"
#include "opal/class/opal_bitmap.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/util/output.h"

int lane_add_procs(mca_btl_base_module_t *module, size_t count, opal_proc_t **procs,
                   struct mca_btl_base_endpoint_t **peers, struct opal_bitmap_t *reachable,
                   struct mca_btl_base_endpoint_t *(*add)(mca_btl_base_module_t *module,
                                                          opal_proc_t *proc, int *status))
{
    int status = OPAL_SUCCESS;

    for (size_t i = 0; i < count && status == OPAL_SUCCESS; i++) {
        peers[i] = procs[i] == opal_proc_local_get() ? NULL : add(module, procs[i], &status);
        if (peers[i] && reachable)
            status = opal_bitmap_set_bit(reachable, (int) i);
    }
    return status;
}

static mca_btl_base_module_error_cb_fn_t error_callback;

int lane_error_to(mca_btl_base_module_t *module, mca_btl_base_module_error_cb_fn_t callback)
{
    error_callback = callback;
    return OPAL_SUCCESS;
}

void lane_lost(mca_btl_base_module_t *module, opal_proc_t *proc, const char *why)
{
    if (error_callback && proc)
        error_callback(module, 0, proc, (char *) why); /* which only reads it */
}

void lane_messages_lost(mca_btl_base_module_t *module, opal_proc_t *proc, const char *why)
{
    if (error_callback && proc)
        error_callback(module, MCA_BTL_ERROR_FLAGS_FATAL, proc, (char *) why); /* as above */
}

__attribute__((noinline)) void fragment_unwanted(const mca_btl_base_module_t *module,
                                                 mca_btl_base_tag_t tag)
{
    SAY_ONCE(opal_output, 0,
             "btl/%s: a message came with tag %u, which no callback is registered for; it and "
             "others like it are dropped. Do all processes use the same pml?",
             module->btl_component->btl_version.mca_component_name, tag);
}

/* --- messages --- */

#define FRAGMENT_ALIGNMENT 64u /* a cache line, which no other thread's fragment shares */

static int fragment_made(opal_free_list_item_t *item, void *context)
{
    tsan_release(item); /* tsan_list_get */
    return OPAL_SUCCESS;
}

int fragments_open(opal_free_list_t *list, size_t bytes, size_t registered_bytes, int at_first,
                   int at_once, mca_rcache_base_module_t *rcache)
{
    OBJ_CONSTRUCT(list, opal_free_list_t);
    return opal_free_list_init(
        list, bytes, FRAGMENT_ALIGNMENT, OBJ_CLASS(mca_btl_base_descriptor_t), registered_bytes,
        FRAGMENT_ALIGNMENT, at_first, -1, at_once, NULL, 0, rcache, fragment_made, NULL);
}

void fragment_begin(mca_btl_base_descriptor_t *descriptor, mca_btl_base_segment_t *segments,
                    void *memory, size_t size, uint8_t order, uint32_t flags)
{
    descriptor->order = order;
    descriptor->des_flags = flags;
    descriptor->des_cbfunc = NULL;
    descriptor->des_segments = segments;
    descriptor->des_segment_count = 1;
    segments[0].seg_addr.pval = memory;
    segments[0].seg_len = size;
}

mca_btl_base_descriptor_t *fragment_prepare(mca_btl_base_module_t *btl,
                                            struct mca_btl_base_endpoint_t *peer,
                                            struct opal_convertor_t *convertor, uint8_t order,
                                            size_t reserve, size_t *size, uint32_t flags,
                                            size_t in_place_bytes)
{
    size_t most = btl->btl_max_send_size - reserve, packed = *size < most ? *size : most;
    bool stays = packed >= in_place_bytes && !opal_convertor_need_buffers(convertor);
    mca_btl_base_descriptor_t *descriptor =
        btl->btl_alloc(btl, peer, order, stays ? reserve : reserve + packed, flags);

    if (OPAL_UNLIKELY(!descriptor))
        return NULL;
    mca_btl_base_segment_t *segments = (mca_btl_base_segment_t *) descriptor->des_segments;
    unsigned char *room = (unsigned char *) segments[0].seg_addr.pval + reserve;
    /* Without a buffer the convertor says where the bytes are. */
    struct iovec part = {.iov_base = stays ? NULL : room, .iov_len = packed};
    uint32_t parts = 1;
    if (OPAL_UNLIKELY(opal_convertor_pack(convertor, &part, &parts, &packed) < 0)) {
        btl->btl_free(btl, descriptor);
        return NULL;
    }
    *size = packed;
    segments[0].seg_len = stays ? reserve : reserve + packed;
    if (stays) {
        segments[1].seg_addr.pval = part.iov_base;
        segments[1].seg_len = packed;
        descriptor->des_segment_count = 2;
    }
    return descriptor;
}

bool fragment_pack(struct opal_convertor_t *convertor, void *room, size_t size)
{
    struct iovec part = {.iov_base = room, .iov_len = size};
    uint32_t parts = 1;
    size_t packed = size;

    return size == 0 ||
           (opal_convertor_pack(convertor, &part, &parts, &packed) >= 0 && packed == size);
}

mca_btl_base_descriptor_t *fragment_copy(mca_btl_base_module_t *btl,
                                         struct mca_btl_base_endpoint_t *peer,
                                         struct opal_convertor_t *convertor, const void *header,
                                         size_t header_bytes, size_t payload_bytes)
{
    mca_btl_base_descriptor_t *descriptor = btl->btl_alloc(
        btl, peer, MCA_BTL_NO_ORDER, header_bytes + payload_bytes, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);

    if (!descriptor)
        return NULL;
    unsigned char *room = descriptor->des_segments[0].seg_addr.pval;
    memcpy(room, header, header_bytes);
    if (fragment_pack(convertor, room + header_bytes, payload_bytes))
        return descriptor;
    btl->btl_free(btl, descriptor);
    return NULL;
}

void fragment_end(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
                  mca_btl_base_descriptor_t *descriptor, bool notifies, int status)
{
    /* Read before: the owner may free it when it is told. */
    bool is_ours = (descriptor->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0;

    if (notifies && descriptor->des_cbfunc)
        descriptor->des_cbfunc(btl, peer, descriptor, status);
    if (is_ours)
        btl->btl_free(btl, descriptor);
}
