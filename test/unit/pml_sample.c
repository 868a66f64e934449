/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of messages: few are taken, each once, and only by the answer of the receiver itself. */
#include "check.h"

#include <string.h>

#include "entry/calls.h"
#include "job_standin.h"
#include "peer/peer_class.h"

#define TAG    5
#define WINDOW (1 << 24)

static const unsigned char bytes[8];

static void begin(int explain)
{
    parameters.explain = explain;
    job_begin(WINDOW, 0);
    job_has_room = true;
    standin_expects_failures = true;
    standin_failures = 0;
    multilane.bad_headers = 0;
}

static struct route *route_used(void)
{
    return class_route_at(peer_class_now(job_peer(1)), CLASS_CONTIGUOUS, sizeof(bytes));
}

/* The handle that the message asks an answer to; false: it asks for none. */
static bool handle_of(const struct job_sent *sent, struct wire_handle *handle)
{
    struct wire_base base;
    memcpy(&base, sent->bytes, sizeof(base));
    if (base.type != WIRE_EAGER || !(base.flags & WIRE_SYNCHRONOUS))
        return false;
    memcpy(handle, sent->bytes + sizeof(base), sizeof(*handle));
    return true;
}

static bool send_one(struct wire_handle *handle)
{
    job_forget();
    ompi_request_t *request = job_send(bytes, sizeof(bytes), 1, TAG);
    CHECK(request_is_complete(request), "a send waits for an answer");
    CHECK(job_free(request) == MPI_SUCCESS, "a send failed");
    return handle_of(&job_sent[0], handle);
}

static void answer(int rank, struct wire_handle handle)
{
    const struct wire_ack ack = {.sender = handle};
    job_control(rank, 0, WIRE_ACK, &ack, sizeof(ack), NULL, 0);
}

static void few_messages_ask_for_an_answer(void)
{
    begin(2);
    struct wire_handle handle = {0};
    unsigned asked = 0;
    for (unsigned i = 1; i <= 512; i++) {
        bool asks = send_one(&handle);
        bool due = i % 128 == 0 || (i > 1 && i < 128 && (i & (i - 1)) == 0);
        CHECK(asks == due, "message %u asks: %d", i, asks);
        asked += asks;
        if (asks)
            answer(1, handle);
    }
    CHECK(asked == 6 + 4, "%u of 512 asked", asked);
    CHECK(route_used()->samples->taken == asked, "%u times were taken",
          route_used()->samples->taken);
    CHECK(!multilane.bad_headers, "an answer is bad");
    job_end();
}

static void the_time_is_that_to_the_answer(void)
{
    begin(1);
    struct wire_handle handle = {0};
    send_one(&handle);
    CHECK(send_one(&handle), "the second does not ask");
    standin_now_ns += 5000;
    answer(2, handle); /* which the message did not go to */
    CHECK(!route_used()->samples->taken && multilane.bad_headers == 1,
          "another peer's answer counts");
    answer(1, handle);
    const struct sample *sample = &route_used()->samples->kept[0];
    CHECK(route_used()->samples->taken == 1 && sample->ns == 5000 && sample->bytes == 8 &&
              sample->is_answered,
          "%u taken: %llu ns", route_used()->samples->taken, (unsigned long long) sample->ns);
    answer(1, handle);
    CHECK(route_used()->samples->taken == 1 && multilane.bad_headers == 2,
          "an answer counts twice");
    job_end();
}

static void without_a_report_nothing_is_timed(void)
{
    struct wire_handle handle = {0};
    begin(0);
    for (int i = 0; i < 256; i++)
        CHECK(!send_one(&handle), "message %d asks", i);
    CHECK(!route_used()->samples && route_used()->post == route_used()->protocol->post,
          "the message's way is another");
    job_end();
}

static void without_answers_it_ends(void)
{
    struct wire_handle handle = {0};
    unsigned asked = 0;
    begin(2);
    for (int i = 0; i < 128 * 80; i++)
        asked += send_one(&handle);
    CHECK(asked == 64, "%u messages wait for an answer", asked);
    job_end();
}

static void a_synchronous_send_goes_by_its_own_plan(void)
{
    ompi_request_t *request;
    begin(0);
    int rc = module_isend(bytes, sizeof(bytes), &ompi_mpi_byte.dt, 1, TAG,
                          MCA_PML_BASE_SEND_SYNCHRONOUS, &job_ompi_comm, &request);
    struct wire_handle handle = {0};
    CHECK(rc == OMPI_SUCCESS && handle_of(&job_sent[job_sent_count - 1], &handle), "no answer");
    CHECK(!request_is_complete(request), "it does not wait");
    answer(1, handle);
    CHECK(request_is_complete(request) && job_free(request) == MPI_SUCCESS, "it has not ended");
    const struct route *route =
        class_route_at(peer_class_now(job_peer(1)), CLASS_SYNC, sizeof(bytes));
    CHECK(route->messages == 1 && route_used()->messages == 0, "by another plan");
    job_end();
}

int main(void)
{
    a_synchronous_send_goes_by_its_own_plan();
    few_messages_ask_for_an_answer();
    the_time_is_that_to_the_answer();
    without_a_report_nothing_is_timed();
    without_answers_it_ends();
    return check_end();
}
