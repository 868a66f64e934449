/* SPDX-License-Identifier: BSD-3-Clause */
/* A striped message whose lanes have enough to do waits for their reports, and ends in an error
 * when the receiver, who would send them, is lost. */
#include "check.h"

#include <string.h>

#include "delivery/delivery.h"
#include "request/pieces.h"
#include "peer/stripe.h"
#include "progress_standin.h"

#define SIZE ((size_t) 1 << 20)

static struct peer peer;
static struct send_request request;
static int ended, status_at_end;

/* --- what lies around --------------------------------------------------------------------------
 */

struct lane *stripe_choose(const struct route *route, struct peer *to, size_t total, size_t *size,
                           bool may_wait)
{
    (void) route;
    (void) size;
    CHECK(to == &peer && total == SIZE && may_wait, "%zu bytes", total);
    return NULL;
}

size_t stripe_fragment(size_t left, size_t most)
{
    (void) left;
    (void) most;
    abort();
}

void stripe_sent(struct lane *lane, size_t size)
{
    (void) lane;
    (void) size;
    abort();
}

struct frame *frame_begin(struct lane *lane, size_t length, int *rc)
{
    (void) lane;
    (void) length;
    (void) rc;
    abort();
}

void frame_send(struct frame *frame, size_t length, bool striped, lane_left left, void *owner)
{
    (void) frame;
    (void) length;
    (void) striped;
    (void) left;
    (void) owner;
    abort();
}

void frame_drop(struct frame *frame)
{
    (void) frame;
    abort();
}

int lane_send_descriptor(struct lane *lane, mca_btl_base_descriptor_t *descriptor, lane_left left,
                         void *owner)
{
    (void) left;
    (void) owner;
    (void) lane;
    (void) descriptor;
    abort();
}

/* --- the test ----------------------------------------------------------------------------------
 */

static int piece_start(struct transfer *transfer, size_t offset, size_t *size)
{
    return piece_send_data(&request, transfer, &request.base.req_base.req_convertor, 0, offset,
                           size);
}

static void pieces_finish(struct transfer *transfer, int status)
{
    CHECK(transfer == &request.transfer, "another transfer");
    ended++;
    status_at_end = status;
}

static const struct transfer_way way = {.start = piece_start, .finish = pieces_finish};

int main(void)
{
    static ompi_proc_t process;
    memset(&process, true, sizeof(process)); /* it lives, where Open MPI knows: see lost_or_dead */
    pending_open();
    peer.proc = &process;
    request.out.peer = &peer;
    request.out.size = SIZE;
    transfer_begin(&request.transfer, &way, 0, SIZE, 4);
    for (int i = 0; i < 100; i++)
        progress_standin_run();
    CHECK(!ended, "it ended while the receiver may still report");
    peer.lost = true;
    for (int i = 0; i < 100; i++)
        progress_standin_run();
    CHECK(ended == 1 && status_at_end == OMPI_ERR_UNREACH, "%d ends, the last one %d", ended,
          status_at_end);
    return check_end();
}
