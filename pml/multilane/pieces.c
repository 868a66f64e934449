/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of a sent message. */
#include "pieces.h"

#include "stripe.h"

#include <string.h>

static void piece_sent(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       mca_btl_base_descriptor_t *descriptor, int status)
{
    struct transfer *transfer = descriptor->des_cbdata;
    (void) btl;
    (void) endpoint;
    transfer_piece_done(transfer, status);
}

int piece_send(struct send_request *request, struct lane *lane, const void *header,
               size_t header_length, size_t offset, size_t *size, bool all)
{
    opal_convertor_t *convertor = &request->base.req_base.req_convertor;
    size_t most = lane_largest_send(lane) - header_length;
    size_t taken = *size < most ? *size : most;
    size_t position = offset;

    /* The transfer lets one thread at a time start pieces: the convertor needs no lock. */
    opal_convertor_set_position(convertor, &position);
    mca_btl_base_descriptor_t *descriptor = lane->btl->btl_prepare_src(
        lane->btl, lane->endpoint, convertor, MCA_BTL_NO_ORDER, header_length, &taken,
        MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK |
            MCA_BTL_DES_FLAGS_SIGNAL);
    if (!descriptor)
        return LANE_AGAIN;
    if (taken == 0 || (all && taken < *size)) {
        lane->btl->btl_free(lane->btl, descriptor);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    memcpy(descriptor->des_segments[0].seg_addr.pval, header, header_length);
    descriptor->des_cbfunc = piece_sent;
    descriptor->des_cbdata = &request->transfer;
    *size = taken;
    int rc = lane_send_descriptor(lane, descriptor);
    if (rc == OMPI_SUCCESS)
        stripe_sent(lane, taken);
    return rc;
}
