/* SPDX-License-Identifier: BSD-3-Clause */
/* A striped message whose lanes have enough to do waits for their reports, and ends in an error
 * when the receiver, who would send them, is lost. */
#include "check.h"

#include "lanes_standin.h"
#include "contact/peer_lanes.h"
#include "plan/stripe.h"
#include "progress_standin.h"
#include "request/pieces.h"

#define SIZE  ((size_t) 1 << 20)
#define LANES 2

static const struct route route = {.lane_count = LANES, .lanes = {0, 1}, .counted = true};
static struct send_request request;
static int ended, status_at_end;

static bool nothing_is_sent(const mca_btl_base_module_t *btl,
                            const struct mca_btl_base_endpoint_t *endpoint,
                            const unsigned char *bytes, size_t length)
{
    (void) btl;
    (void) endpoint;
    (void) bytes;
    CHECK(false, "%zu bytes go to a lane that has enough to do", length);
    return true;
}

static int piece_start(struct transfer *transfer, size_t offset, size_t *size)
{
    return piece_send_data(&request, transfer, NULL, offset, size);
}

static void pieces_finish(struct transfer *transfer, int status)
{
    CHECK(transfer == &request.transfer, "another transfer");
    ended++;
    status_at_end = status;
}

static const struct transfer_steps way = {.start = piece_start, .finish = pieces_finish};

int main(void)
{
    standin_begin();
    standin_takes = nothing_is_sent;
    struct peer *peer = standin_peer();
    for (int i = 0; i < LANES; i++)
        standin_reach(peer, standin_btl("tcp", 1000));
    CHECK(peer_take_lanes(peer), "no lanes");
    for (int i = 0; i < LANES; i++)
        stripe_sent(&peer->lanes[i], 64 * SIZE);
    request.route = &route;
    request.out.peer = peer;
    request.out.size = SIZE;
    transfer_begin(&request.transfer, &way, SIZE, 4);
    for (int i = 0; i < 100; i++)
        progress_standin_run();
    CHECK(!ended, "it ended while the receiver may still report");
    peer->lost = true;
    for (int i = 0; i < 100; i++)
        progress_standin_run();
    CHECK(ended == 1 && status_at_end == OMPI_ERR_UNREACH, "%d ends, the last one %d", ended,
          status_at_end);
    return check_end();
}
