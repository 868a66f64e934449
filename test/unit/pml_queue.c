/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends whose receiver or lane has no room: they wait, go in the order of their numbers as soon as
 * there is some, and end in an error when the receiver is lost. */
#include "check.h"

#include <string.h>

#include "entry/calls.h"
#include "job_standin.h"
#include "liveness/liveness.h"
#include "progress_standin.h"
#include "request/send_request.h"

#define TAG        5
#define WINDOW     120
#define COST       FLOW_MESSAGE_UNITS /* of a short message */
#define ROOM       (WINDOW + flow_headers(WINDOW))
#define SENDS      200
#define LONG_BYTES 6000 /* more than the window */

static const unsigned char bytes[LONG_BYTES];
static ompi_request_t *sends[SENDS];
static unsigned send_count;

static void begin(void)
{
    job_begin(WINDOW, 0);
    send_count = 0;
    job_has_room = true;
    standin_expects_failures = true;
    multilane.bad_headers = multilane.waited_messages = 0;
    multilane.lost_peers = 0;
}

static void send_one(size_t size)
{
    sends[send_count++] = job_send(bytes, size, 1, TAG);
}

static void tell(uint32_t limit, uint32_t headers)
{
    const struct wire_credit credit = {.limit = limit, .headers = headers};
    job_control(1, 0, WIRE_CREDIT, &credit, sizeof(credit), NULL, 0);
}

/* How many messages went to the receiver, in the order of their numbers. */
static unsigned check_order(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < job_sent_count; i++) {
        if (job_sent[i].type != WIRE_EAGER && job_sent[i].type != WIRE_RTS)
            continue;
        CHECK(job_sequence(&job_sent[i]) == count, "message %u goes as number %u",
              job_sequence(&job_sent[i]), count);
        count++;
    }
    return count;
}

static unsigned complete_count(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < send_count; i++)
        count += request_is_complete(sends[i]);
    return count;
}

static void free_all(int mpi_error)
{
    for (unsigned i = 0; i < send_count; i++) {
        CHECK(request_is_complete(sends[i]), "send %u goes on", i);
        int error = job_free(sends[i]);
        CHECK(error == mpi_error, "send %u: MPI_ERROR is %d", i, error);
    }
    CHECK(!send_queue_any(job_peer(1)) && !pending_queue.first, "something waits");
}

/* --- the receiver -------------------------------------------------------------------------------
 */

static void what_the_receiver_has_no_room_for_waits_until_it_tells_of_some(void)
{
    const unsigned room = ROOM / COST, more = 10;
    begin();
    for (unsigned i = 0; i < room + 20; i++)
        send_one(8);
    CHECK(check_order() == room && complete_count() == room, "%u went, there was room for %u",
          check_order(), room);
    CHECK(multilane.waited_messages == 20, "%llu wait",
          (unsigned long long) multilane.waited_messages);
    progress_standin_run();
    CHECK(check_order() == room, "it went without room");
    tell(WINDOW, (room + more) * COST - 1);
    progress_standin_run();
    CHECK(check_order() == room + more - 1, "%u went", check_order());
    tell(WINDOW, (room + more) * COST);
    progress_standin_run();
    CHECK(check_order() == room + more && complete_count() == room + more, "%u went",
          check_order());
    tell(WINDOW, (room + more - 5) * COST); /* overtaken by the last one */
    CHECK(multilane.bad_headers == 0, "an old limit is an error");
    send_one(8);
    progress_standin_run();
    CHECK(check_order() == room + more, "one went past those that wait");
    tell(WINDOW + 100 * COST, ROOM + 100 * COST);
    progress_standin_run();
    CHECK(check_order() == send_count, "%u of %u went", check_order(), send_count);
    free_all(MPI_SUCCESS);
    job_end();
}

/* It takes little of the receiver, who is told of it and asks for the rest. */
static void a_long_message_beyond_the_window_is_announced(void)
{
    begin();
    send_one(8);
    send_one(LONG_BYTES);
    send_one(8);
    CHECK(check_order() == 3 && job_count(1, WIRE_RTS) == 1 && job_sent[1].type == WIRE_RTS,
          "%u RTS", job_count(1, WIRE_RTS));
    CHECK(job_peer(1)->out.refunded == flow_cost(LONG_BYTES) - COST, "%u units are refunded",
          job_peer(1)->out.refunded);
    CHECK(complete_count() == 2, "%u are complete", complete_count());

    struct wire_rts rts;
    const struct job_sent *sent = &job_sent[1];
    memcpy(&rts, sent->bytes + sent->length - sizeof(rts), sizeof(rts));
    const struct wire_ack ack = {.sender = rts.sender};
    job_control(1, 1, WIRE_ACK, &ack, sizeof(ack), NULL, 0);
    free_all(MPI_SUCCESS);
    job_end();
}

static void limits_that_cannot_be_are_refused(void)
{
    begin();
    for (unsigned i = 0; i < ROOM / COST + 5; i++)
        send_one(8);
    const unsigned went = check_order();
    const uint32_t far = (UINT32_C(1) << 30) + SENDS * COST;
    tell(far, ROOM);
    CHECK(multilane.bad_headers == 1, "eager data up to %u", far);
    tell(WINDOW, far);
    CHECK(multilane.bad_headers == 2, "RTS up to %u", far);
    const struct wire_credit credit = {.limit = 100 * COST, .headers = 100 * COST};
    job_control(1, 0, WIRE_CREDIT, &credit, sizeof(credit) - 1, NULL, 0);
    CHECK(multilane.bad_headers == 3, "part of the limits");
    progress_standin_run();
    CHECK(check_order() == went, "they count");
    tell(100 * COST, ROOM + 100 * COST);
    progress_standin_run();
    CHECK(check_order() == send_count, "%u of %u went", check_order(), send_count);
    free_all(MPI_SUCCESS);
    job_end();
}

/* --- a lane -------------------------------------------------------------------------------------
 */

static void what_a_lane_refuses_goes_before_what_comes_later(void)
{
    begin();
    job_has_room = false;
    send_one(8);
    CHECK(job_sent_count == 0 && complete_count() == 0, "it went");
    progress_standin_run();
    job_has_room = true;
    send_one(8); /* must not overtake */
    send_one(LONG_BYTES);
    progress_standin_run();
    CHECK(check_order() == 3, "%u went", check_order());
    CHECK(complete_count() == 2 && multilane.waited_messages == 0, "%u are complete",
          complete_count());
    send_queue_lost(job_peer(1)); /* nothing waits */
    sends[2] = sends[0];          /* its receiver never answers: it goes with the job */
    send_count = 2;
    free_all(MPI_SUCCESS);
    job_end();
}

/* Room comes just when a later one is sent. */
static void what_comes_later_waits_behind_what_a_lane_has_refused(void)
{
    begin();
    for (int i = 0; i < 5; i++) {
        job_refusals = 1; /* of the first one, again and again */
        send_one(8);
        CHECK(job_sent_count == 0, "message %u overtakes", job_sequence(&job_sent[0]));
    }
    progress_standin_run();
    CHECK(check_order() == 5, "%u went", check_order());
    free_all(MPI_SUCCESS);
    job_end();
}

/* Rooms come and go; a receiver that receives each message some time after it came. */
static void messages_go_in_order_whatever_has_room(uint64_t seed)
{
    uint64_t chance = seed;
    uint32_t received = 0; /* units */
    unsigned units_of = 0;
    begin();
    for (int turn = 0; turn < 5000 && (send_count < SENDS || complete_count() < SENDS); turn++) {
        if (send_count < SENDS && chance_below(&chance, 2))
            send_one(chance_below(&chance, 100));
        if (chance_below(&chance, 8) == 0)
            job_has_room = !job_has_room;
        unsigned went = check_order();
        if (units_of < went && chance_below(&chance, 3) == 0) {
            units_of += 1 + (unsigned) chance_below(&chance, went - units_of);
            received = units_of * COST;
            tell(received + WINDOW, received + ROOM);
        }
        progress_standin_run();
        CHECK(check_order() * COST <= received + ROOM, "%u went, there was room for %u",
              check_order(), (received + ROOM) / COST);
    }
    CHECK(check_order() == SENDS, "seed %llu: %u of %u went", (unsigned long long) seed,
          check_order(), SENDS);
    free_all(MPI_SUCCESS);
    job_end();
}

/* --- the end of what waits ----------------------------------------------------------------------
 */

static void one_that_is_withdrawn_is_not_sent(void)
{
    begin();
    job_has_room = false;
    for (int i = 0; i < 4; i++)
        send_one(8);
    struct send_request *second = (struct send_request *) sends[1];
    struct send_request *last = (struct send_request *) sends[3];
    CHECK(send_queue_withdraw(second) && send_queue_withdraw(last), "they wait");
    CHECK(!send_queue_withdraw(second), "it waits no more");
    send_one(8);
    job_has_room = true;
    progress_standin_run();
    static const uint32_t went[] = {0, 2, 4};
    CHECK(job_sent_count == 3, "%u went", job_sent_count);
    for (unsigned i = 0; i < job_sent_count && i < 3; i++)
        CHECK(job_sequence(&job_sent[i]) == went[i], "number %u", job_sequence(&job_sent[i]));
    send_request_fail(second, MPI_ERR_OTHER);
    send_request_fail(last, MPI_ERR_OTHER);
    for (unsigned i = 0; i < send_count; i++) {
        int error = job_free(sends[i]);
        CHECK(error == (i == 1 || i == 3 ? MPI_ERR_OTHER : MPI_SUCCESS), "send %u: %d", i, error);
    }
    job_end();
}

static void a_lost_receiver_ends_what_waits(bool has_room)
{
    const unsigned went = has_room ? ROOM / COST : 0;
    begin();
    job_has_room = has_room;
    for (unsigned i = 0; i < went + 5; i++)
        send_one(8);
    CHECK(complete_count() == went, "%u are complete", complete_count());
    ompi_request_t *other = job_send(bytes, 8, 2, TAG);
    CHECK(lost_is_returned(job_peer(1)), "errors are to be returned");
    progress_standin_run();
    CHECK(complete_count() == send_count, "%u of %u have ended", complete_count(), send_count);
    for (unsigned i = 0; i < send_count; i++) {
        int error = job_free(sends[i]);
        CHECK(error == (i < went ? MPI_SUCCESS : COMPAT_ERR_PROC_FAILED), "send %u: %d", i, error);
    }
    CHECK(!send_queue_any(job_peer(1)), "something waits");
    send_count = 0;
    send_one(8);
    CHECK(request_is_complete(sends[0]) && job_free(sends[0]) == COMPAT_ERR_PROC_FAILED,
          "a send to a lost process");
    job_has_room = true;
    progress_standin_run();
    CHECK(request_is_complete(other) && job_free(other) == MPI_SUCCESS && job_count(2, WIRE_EAGER),
          "a send to another one");
    job_end();
}

static int proc_forgotten(size_t count, struct ompi_proc_t **procs)
{
    (void) procs;
    return count == 1 ? OMPI_SUCCESS : OMPI_ERROR;
}

/* The BTLs have freed its endpoints by then. */
static void nothing_is_sent_to_a_process_that_is_forgotten(void)
{
    unsigned char got[8];
    begin();
    mca_bml.bml_del_procs = proc_forgotten;
    job_has_room = false;
    struct recv_request *request = job_receive(got, sizeof(got), 1, TAG);
    job_synchronous(1, 0, 0, TAG, bytes, sizeof(got), (struct wire_handle){3, 9});
    CHECK(!job_is_complete(request), "the answer has left");
    CHECK(module_del_procs(&job_peer(1)->proc, 1) == OMPI_SUCCESS, "it stays");
    job_has_room = true;
    progress_standin_run();
    CHECK(job_count(1, WIRE_ACK) == 0, "the answer is sent");
    CHECK(job_is_complete(request) && job_free(job_ompi(request)) == MPI_SUCCESS,
          "the message has come");
    job_end();
}

/* --- puts --- */

static struct {
    mca_btl_base_rdma_completion_fn_t ended;
    void *context, *data;
    unsigned count;
} put;

static int memory_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      void *local, uint64_t remote,
                      mca_btl_base_registration_handle_t *local_handle,
                      mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                      int order, mca_btl_base_rdma_completion_fn_t ended, void *context, void *data)
{
    (void) btl, (void) endpoint, (void) local, (void) remote, (void) local_handle;
    (void) remote_handle, (void) flags, (void) order;
    CHECK(size == LONG_BYTES, "%zu bytes", size);
    put.ended = ended, put.context = context, put.data = data;
    put.count++;
    return OPAL_SUCCESS;
}

/* Once, and where the lane keeps the order, before the bytes are known to be there. */
static void word_follows_the_puts(bool keeps_order, bool returns)
{
    begin();
    struct lane *lane = &job_peer(1)->lanes[0];
    mca_btl_base_module_t *btl = lane->btl;
    bool did_return = lane->returns;
    btl->btl_put = memory_put;
    btl->btl_put_limit = SIZE_MAX;
    lane->flags |= MCA_BTL_FLAGS_PUT;
    lane->keeps_order = keeps_order;
    lane->returns = returns;
    put.count = 0;
    send_one(LONG_BYTES);
    const struct wire_rtr rtr = {.sender = ((struct send_request *) sends[0])->handle,
                                 .receiver = {3, 9},
                                 .size = LONG_BYTES,
                                 .method = WIRE_BY_PUT};
    job_control(1, 0, WIRE_RTR, &rtr, sizeof(rtr), NULL, 0);
    CHECK(put.count == 1, "%u puts", put.count);
    unsigned early = job_count(1, WIRE_FIN);
    CHECK(early == (keeps_order && !returns), "%u before the put has ended", early);
    CHECK(!request_is_complete(sends[0]), "the memory is still read");
    put.ended(btl, lane->endpoint, NULL, NULL, put.context, put.data, OPAL_SUCCESS);
    progress_standin_run();
    CHECK(returns || job_count(1, WIRE_FIN) == 1, "%u in all", job_count(1, WIRE_FIN));
    CHECK(returns || (request_is_complete(sends[0]) && job_free(sends[0]) == MPI_SUCCESS),
          "its end");
    lane->flags &= ~(uint32_t) MCA_BTL_FLAGS_PUT;
    lane->returns = did_return;
    job_end();
}

int main(void)
{
    what_the_receiver_has_no_room_for_waits_until_it_tells_of_some();
    a_long_message_beyond_the_window_is_announced();
    limits_that_cannot_be_are_refused();
    what_a_lane_refuses_goes_before_what_comes_later();
    what_comes_later_waits_behind_what_a_lane_has_refused();
    for (uint64_t seed = 1; seed <= (check_is_long() ? 1000 : 40); seed++)
        messages_go_in_order_whatever_has_room(seed * UINT64_C(0x9e3779b97f4a7c15));
    one_that_is_withdrawn_is_not_sent();
    a_lost_receiver_ends_what_waits(true);
    a_lost_receiver_ends_what_waits(false);
    nothing_is_sent_to_a_process_that_is_forgotten();
    word_follows_the_puts(true, false);
    word_follows_the_puts(false, false);
    word_follows_the_puts(true, true);
    return check_end();
}
