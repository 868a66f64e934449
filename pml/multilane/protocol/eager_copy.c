/* SPDX-License-Identifier: BSD-3-Clause */
/* eager-copy: the message is copied into one fragment of the lane. */
#include "protocol.h"

#include <string.h>

/* Nobody waits for the fragment: the message is in it, and the sender's buffer is free. */
static void eager_copy_sent(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                            mca_btl_base_descriptor_t *descriptor, int status)
{
    (void) endpoint;
    (void) descriptor;
    if (status != OPAL_SUCCESS)
        btl_failed(btl, "could not deliver a message that it had accepted", status);
}

static int eager_copy_post(const struct outgoing *out, const struct route *route)
{
    struct lane *lane = route_lane(route, out->peer, 0);
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    size_t length = comm_write_match(out->comm, out->peer, header, WIRE_EAGER, out->sequence,
                                     out->tag, out->synchronous);
    mca_btl_base_descriptor_t *descriptor =
        lane->btl->btl_alloc(lane->btl, lane->endpoint, MCA_BTL_NO_ORDER, length + out->size,
                             MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    if (OPAL_UNLIKELY(!descriptor))
        return LANE_AGAIN;
    if (OPAL_UNLIKELY(descriptor->des_segments[0].seg_len < length + out->size)) {
        lane->btl->btl_free(lane->btl, descriptor);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    unsigned char *bytes = descriptor->des_segments[0].seg_addr.pval;
    memcpy(bytes, header, length);
    outgoing_copy(out, bytes + length);
    descriptor->des_segments[0].seg_len = length + out->size;
    descriptor->des_cbfunc = eager_copy_sent;
    return lane_send_descriptor(lane, descriptor);
}

const struct protocol eager_copy = {
    .name = "eager-copy",
    .post = eager_copy_post,
    .start = eager_start,
};
