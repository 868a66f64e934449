/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-staged: RTS, RTR, then the data of device memory through slots of host memory, as active
 * messages over any lane.
 *
 * A slot passes two stages: the driver fills it, the lanes empty it. Several are under way, so the
 * stages overlap; what joins them is the queue of copies (staging.c): its tail is moved by what
 * starts a copy, its head by progress that sees one ended, and each slot says how much it holds.
 * The receiver does the same in the other direction (device_ends.c), and does not care what
 * memory the sender has: to it this is rndv-am. */

#include "memory/device.h"
#include "protocol/common.h"

#include "request/pieces.h"

extern const struct protocol rndv_staged;

/* The status of a transfer whose data could not be read. No lane says that. */
#define UNREADABLE 1

/* Slots of one message: one is filled while another is emptied, and there is no gap between. */
#define SLOTS_UNDER_WAY 4

/* A message is cut into at least so many slots where they do not get too short for their overhead:
 * the first and the last one pass while a stage has nothing to do. */
#define SLOTS_A_MESSAGE 8
#define PIECE_MIN       ((size_t) 64 << 10)

static size_t piece_size(size_t total, size_t left)
{
    size_t piece = (total / SLOTS_A_MESSAGE + 4095) & ~(size_t) 4095;
    if (piece < PIECE_MIN)
        piece = PIECE_MIN;
    if (piece > SLOT_BYTES)
        piece = SLOT_BYTES;
    return piece < left ? piece : left;
}

static struct slot *slot_of_transfer(struct transfer *transfer)
{
    return (struct slot *) ((char *) transfer - offsetof(struct slot, transfer));
}

/* --- the second stage: a slot is sent --------------------------------------------------------- */

static int slot_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct slot *slot = slot_of_transfer(transfer);
    return piece_send_data(slot->owner, transfer, (char *) slot->bytes + offset,
                           slot->offset + offset, size);
}

static void slot_sent(struct transfer *transfer, int status)
{
    struct slot *slot = slot_of_transfer(transfer);
    struct send_request *request = slot->owner;
    if (OPAL_LIKELY(status == OMPI_SUCCESS))
        /* Relaxed: the end of the piece, below, orders it before the end of the message. */
        atomic_fetch_sub_explicit(&request->unsent, slot->length, memory_order_relaxed);
    slot_return(slot);
    transfer_piece_done(&request->transfer, status);
}

static const struct transfer_steps slot_way = {.start = slot_piece, .finish = slot_sent};

static void slot_send(struct slot *slot)
{
    struct send_request *request = slot->owner;
    transfer_begin(&slot->transfer, &slot_way, slot->length,
                   PIECES_IN_FLIGHT * request->route->lane_count);
}

/* --- the first stage: a slot is filled -------------------------------------------------------- */

static void slot_filled(struct slot *slot, driver_result result)
{
    struct send_request *request = slot->owner;
    if (OPAL_LIKELY(result == DRIVER_SUCCESS)) {
        slot_send(slot);
        return;
    }
    driver_complain("cannot read the device memory of a message", result);
    slot_return(slot);
    transfer_piece_done(&request->transfer, UNREADABLE);
}

static int rndv_staged_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct send_request *request = send_request_of_transfer(transfer);
    size_t wanted = piece_size(request->out.size, *size);
    struct slot *slot = slot_take(request->source.view->copier, wanted);
    /* Where no end of a piece brings a slot back, those in use may be of messages whose receives
     * wait for this one. */
    if (!slot && transfer->in_flight == 0)
        slot = slot_new(wanted);
    if (!slot)
        return LANE_AGAIN;
    slot->owner = request;
    slot->offset = offset;
    slot->length = wanted < slot->room ? wanted : slot->room;
    *size = slot->length;
    driver_result result = slot_copy(slot, request->source.view, COPY_TO_HOST, slot_filled);
    if (OPAL_LIKELY(result == DRIVER_SUCCESS))
        return OMPI_SUCCESS;
    driver_complain("cannot read the device memory of a message", result);
    slot_return(slot);
    return UNREADABLE;
}

/* Tells the receiver how many bytes will not come; else it would wait for ever. */
static void rndv_staged_cancel(struct send_request *request)
{
    bytes_report(peer_control_lane(request->out.peer), WIRE_CANCEL, request->receiver,
                 atomic_load_explicit(&request->unsent, memory_order_relaxed), NULL);
    request->base.req_base.req_ompi.req_status.MPI_ERROR = MPI_ERR_OTHER;
    send_request_step(request);
}

static void rndv_staged_finish(struct transfer *transfer, int status)
{
    if (OPAL_LIKELY(status != UNREADABLE))
        pieces_finish(transfer, status);
    else
        rndv_staged_cancel(send_request_of_transfer(transfer));
}

static const struct transfer_steps rndv_staged_way = {.start = rndv_staged_piece,
                                                      .finish = rndv_staged_finish};

void rndv_staged_move(struct send_request *request, size_t end)
{
    /* The lanes of its own route where that is staged; else those of messages that are packed,
     * which carry messages in any case. */
    if (request->route->protocol != &rndv_staged)
        request->route =
            class_route_at(peer_class_now(request->out.peer), CLASS_PACKED, request->out.size);
    atomic_store_explicit(&request->unsent, end, memory_order_relaxed);
    transfer_begin(&request->transfer, &rndv_staged_way, end, SLOTS_UNDER_WAY);
}

/* Without a key now (memory that cannot be shared, out of handles) it is staged. */
int device_announce(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    struct rma *rma = &request->rma; /* what is registered is given back with the request */
    char *place = send_request_place(request, &rma->is_device);
    unsigned char bytes[WIRE_KEY_MAX];
    struct wire_key key;
    request->protocol = &rndv_staged;
    if (!rma->count && (!place || !peer->device_lane ||
                        !rma_offer_lane(rma, peer->device_lane, place, request->out.size,
                                        MCA_BTL_REG_FLAG_REMOTE_READ)))
        return rndv_announce(request, peer_control_lane(peer), NULL, NULL);
    request->protocol = protocol_of_method(WIRE_BY_DEVICE);
    rma_write_keys(rma, &key, bytes);
    return rndv_announce(request, peer_control_lane(peer), &key, bytes);
}

const struct protocol rndv_staged = {
    .name = "rndv-staged",
    .method = WIRE_BY_SEND,
    .post = post_by_request,
    .start = device_announce,
};
