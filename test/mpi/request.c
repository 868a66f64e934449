// SPDX-License-Identifier: BSD-3-Clause
// Conformance, chapter Point-to-Point Communication: nonblocking completion, probe, matched
// receives, cancel, persistent requests, generalized requests beside them.
#include "suite.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 40 };

// A ring exchange of MANY messages with requests, all of different size and tag.
struct exchange {
    unsigned char *out[MANY], *in[MANY];
    MPI_Request sends[MANY], receives[MANY];
};

static size_t exchange_bytes(int index)
{
    static const size_t sizes[] = {0, 4, 300, 5000, 40000, 100000, 12};
    return sizes[(size_t) index % COUNT_OF(sizes)] + (size_t) index;
}

static uint64_t exchange_key(int source, int index)
{
    return (uint64_t) source * 1000 + (uint64_t) index;
}

static void exchange_begin(struct exchange *exchange)
{
    for (int i = 0; i < MANY; i++) {
        size_t bytes = exchange_bytes(i);
        exchange->out[i] = suite_alloc(bytes);
        exchange->in[i] = suite_alloc(bytes);
        pattern_fill(exchange->out[i], bytes, exchange_key(suite.rank, i));
        memset(exchange->in[i], 0, bytes);
        OK(MPI_Irecv(exchange->in[i], (int) bytes, MPI_BYTE, suite.prev, i, suite.comm,
                     &exchange->receives[i]));
    }
}

static void exchange_send(struct exchange *exchange)
{
    for (int i = 0; i < MANY; i++) {
        int tag = (i * 7) % MANY;
        OK(MPI_Isend(exchange->out[tag], (int) exchange_bytes(tag), MPI_BYTE, suite.next, tag,
                     suite.comm, &exchange->sends[tag]));
    }
}

static void exchange_check_one(const struct exchange *exchange, int index, const MPI_Status *status)
{
    size_t bytes = exchange_bytes(index);
    if (status)
        CHECK_STATUS(*status, suite.prev, index, bytes);
    CHECK_PATTERN(exchange->in[index], bytes, exchange_key(suite.prev, index), "message %d", index);
    CHECK(exchange->receives[index] == MPI_REQUEST_NULL, "request %d is not null when complete",
          index);
}

static void exchange_end(struct exchange *exchange)
{
    OK(MPI_Waitall(MANY, exchange->sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++) {
        CHECK_PATTERN(exchange->out[i], exchange_bytes(i), exchange_key(suite.rank, i),
                      "send buffer %d", i);
        free(exchange->out[i]);
        free(exchange->in[i]);
    }
}

static void waitall_completes_all(void)
{
    struct exchange exchange;
    MPI_Status statuses[MANY];
    exchange_begin(&exchange);
    exchange_send(&exchange);
    OK(MPI_Waitall(MANY, exchange.receives, statuses));
    for (int i = 0; i < MANY; i++)
        exchange_check_one(&exchange, i, &statuses[i]);
    exchange_end(&exchange);
}

static void waitany_gives_each_once(void)
{
    struct exchange exchange;
    bool seen[MANY] = {false};
    exchange_begin(&exchange);
    exchange_send(&exchange);
    for (int i = 0; i < MANY; i++) {
        MPI_Status status;
        int index = -1;
        OK(MPI_Waitany(MANY, exchange.receives, &index, &status));
        CHECK(index >= 0 && index < MANY && !seen[index], "index %d", index);
        if (index < 0 || index >= MANY)
            break;
        seen[index] = true;
        exchange_check_one(&exchange, index, &status);
    }
    int index = 0;
    OK(MPI_Waitany(MANY, exchange.receives, &index, MPI_STATUS_IGNORE));
    CHECK(index == MPI_UNDEFINED, "MPI_Waitany without active requests gave index %d", index);
    exchange_end(&exchange);
}

static void some_completes_at_least_one(bool test)
{
    struct exchange exchange;
    MPI_Status statuses[MANY];
    int indices[MANY], left = MANY, count = 0;
    exchange_begin(&exchange);
    exchange_send(&exchange);
    while (left > 0) {
        if (test)
            OK(MPI_Testsome(MANY, exchange.receives, &count, indices, statuses));
        else
            OK(MPI_Waitsome(MANY, exchange.receives, &count, indices, statuses));
        CHECK(count != MPI_UNDEFINED && (test || count > 0), "count %d with %d left", count, left);
        if (count == MPI_UNDEFINED)
            break;
        for (int i = 0; i < count; i++)
            exchange_check_one(&exchange, indices[i], &statuses[i]);
        left -= count;
        if (count == 0)
            sched_yield();
    }
    OK(MPI_Waitsome(MANY, exchange.receives, &count, indices, statuses));
    CHECK(count == MPI_UNDEFINED, "MPI_Waitsome without active requests gave %d", count);
    OK(MPI_Testsome(MANY, exchange.receives, &count, indices, statuses));
    CHECK(count == MPI_UNDEFINED, "MPI_Testsome without active requests gave %d", count);
    exchange_end(&exchange);
}

static void waitsome_completes_at_least_one(void)
{
    some_completes_at_least_one(false);
}

static void testsome_completes_all_in_the_end(void)
{
    some_completes_at_least_one(true);
}

static void testall_is_all_or_nothing(void)
{
    struct exchange exchange;
    MPI_Status statuses[MANY];
    int flag = 1;
    exchange_begin(&exchange);
    OK(MPI_Testall(MANY, exchange.receives, &flag, statuses));
    CHECK(!flag, "complete before anything was sent");
    for (int i = 0; i < MANY; i++)
        CHECK(exchange.receives[i] != MPI_REQUEST_NULL, "request %d was freed by a false flag", i);
    OK(MPI_Barrier(suite.comm));
    exchange_send(&exchange);
    while (!flag) {
        OK(MPI_Testall(MANY, exchange.receives, &flag, statuses));
        if (!flag)
            sched_yield();
    }
    for (int i = 0; i < MANY; i++)
        exchange_check_one(&exchange, i, &statuses[i]);
    exchange_end(&exchange);
}

static void testany_and_test_complete_in_the_end(void)
{
    struct exchange exchange;
    exchange_begin(&exchange);
    exchange_send(&exchange);
    for (int left = MANY / 2; left > 0;) {
        int index = -1, flag = 0;
        MPI_Status status;
        OK(MPI_Testany(MANY, exchange.receives, &index, &flag, &status));
        if (flag) {
            exchange_check_one(&exchange, index, &status);
            left--;
        } else {
            CHECK(index == MPI_UNDEFINED, "flag false, index %d", index);
            sched_yield();
        }
    }
    for (int i = 0; i < MANY; i++) {
        int flag = 0, fresh = exchange.receives[i] != MPI_REQUEST_NULL;
        MPI_Status status;
        while (!flag) {
            OK(MPI_Test(&exchange.receives[i], &flag, &status));
            if (!flag)
                sched_yield();
        }
        exchange_check_one(&exchange, i, fresh ? &status : NULL);
    }
    exchange_end(&exchange);
}

static void get_status_does_not_free(void)
{
    int in = 0, out = 5 + suite.rank, flag = 0;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(&in, 1, MPI_INT, suite.prev, 0, suite.comm, &request));
    OK(MPI_Send(&out, 1, MPI_INT, suite.next, 0, suite.comm));
    while (!flag) {
        OK(MPI_Request_get_status(request, &flag, &status));
        if (!flag)
            sched_yield();
    }
    CHECK_STATUS(status, suite.prev, 0, sizeof in);
    CHECK(request != MPI_REQUEST_NULL, "MPI_Request_get_status freed the request");
    OK(MPI_Wait(&request, &status));
    CHECK_STATUS(status, suite.prev, 0, sizeof in);
    CHECK(in == 5 + suite.prev, "received %d", in);
}

static void null_requests_are_complete_and_empty(void)
{
    MPI_Request request = MPI_REQUEST_NULL, list[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    int flag = 0, count = -1, cancelled = -1, index = 0;
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG && count == 0 &&
              !cancelled,
          "empty status: source %d tag %d count %d cancelled %d", status.MPI_SOURCE, status.MPI_TAG,
          count, cancelled);
    OK(MPI_Test(&request, &flag, &status));
    CHECK(flag, "MPI_Test of a null request");
    OK(MPI_Testall(2, list, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag, "MPI_Testall of null requests");
    OK(MPI_Testany(2, list, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED, "MPI_Testany of null requests: flag %d index %d", flag,
          index);
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    OK(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag, "MPI_Request_get_status of a null request");
}

// A request may be freed while the operation goes on; the message still arrives.
static void freed_sends_still_deliver(void)
{
    static const size_t sizes[] = {0, 8, 3000, 60000, 900000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t bytes = sizes[i];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Request request;
        pattern_fill(out, bytes, bytes);
        OK(MPI_Isend(out, (int) bytes, MPI_BYTE, suite.next, 0, suite.comm, &request));
        OK(MPI_Request_free(&request));
        CHECK(request == MPI_REQUEST_NULL, "MPI_Request_free left the handle");
        OK(MPI_Recv(in, (int) bytes, MPI_BYTE, suite.prev, 0, suite.comm, MPI_STATUS_IGNORE));
        CHECK_PATTERN(in, bytes, bytes, "%zu bytes", bytes);
        OK(MPI_Barrier(suite.comm)); // the receiver is done with the buffer only after this
        free(in);
        free(out);
    }
}

static void a_freed_receive_is_still_filled(void)
{
    int in = -1, out = 77, done = 1, token = 0;
    MPI_Request request;
    OK(MPI_Irecv(&in, 1, MPI_INT, suite.prev, 0, suite.comm, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Sendrecv(&done, 1, MPI_INT, suite.prev, 1, &token, 1, MPI_INT, suite.next, 1, suite.comm,
                    MPI_STATUS_IGNORE));
    OK(MPI_Send(&out, 1, MPI_INT, suite.next, 0, suite.comm));
    OK(MPI_Sendrecv(&done, 1, MPI_INT, suite.next, 2, &token, 1, MPI_INT, suite.prev, 2, suite.comm,
                    MPI_STATUS_IGNORE));
    CHECK(*(volatile int *) &in == 77, "the freed receive holds %d", in);
}

static void many_requests_at_once(void)
{
    int count = suite.thorough ? 30000 : 5000;
    int *out = suite_alloc((size_t) count * sizeof *out);
    int *in = suite_alloc((size_t) count * sizeof *in);
    MPI_Request *requests = suite_alloc(2 * (size_t) count * sizeof *requests);
    for (int i = 0; i < count; i++)
        OK(MPI_Irecv(&in[i], 1, MPI_INT, suite.prev, i % 1000, suite.comm, &requests[i]));
    for (int i = 0; i < count; i++) {
        out[i] = i ^ suite.rank;
        OK(MPI_Isend(&out[i], 1, MPI_INT, suite.next, i % 1000, suite.comm, &requests[count + i]));
    }
    OK(MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < count; i++)
        CHECK(in[i] == (i ^ suite.prev), "receive %d holds %d", i, in[i]);
    free(out);
    free(in);
    free(requests);
}

// ---- probe ----

static void probe_tells_without_receiving(void)
{
    for (size_t i = 0; i < suite_size_count_below(1 << 20); i += 2) {
        size_t bytes = suite_sizes[i];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Request request;
        MPI_Status status;
        pattern_fill(out, bytes, bytes);
        OK(MPI_Isend(out, (int) bytes, MPI_BYTE, suite.next, 5, suite.comm, &request));
        for (int again = 0; again < 3; again++) {
            int source = again == 1 ? MPI_ANY_SOURCE : suite.prev;
            int tag = again == 2 ? MPI_ANY_TAG : 5;
            OK(MPI_Probe(source, tag, suite.comm, &status));
            CHECK_STATUS(status, suite.prev, 5, bytes);
        }
        OK(MPI_Recv(in, (int) bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, suite.comm,
                    MPI_STATUS_IGNORE));
        CHECK_PATTERN(in, bytes, bytes, "%zu bytes", bytes);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        free(out);
        free(in);
    }
}

static void iprobe_finds_what_was_sent_in_the_end(void)
{
    int flag = 0, out = 3, in = 0;
    MPI_Status status;
    OK(MPI_Iprobe(suite.prev, 5, suite.comm, &flag, &status));
    CHECK(!flag, "found a message although none was sent");
    OK(MPI_Barrier(suite.comm));
    MPI_Request request;
    OK(MPI_Isend(&out, 1, MPI_INT, suite.next, 5, suite.comm, &request));
    while (!flag) {
        OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm, &flag, &status));
        if (!flag)
            sched_yield();
    }
    CHECK_STATUS(status, suite.prev, 5, sizeof in);
    OK(MPI_Iprobe(suite.prev, 6, suite.comm, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "found a tag that was not sent");
    OK(MPI_Recv(&in, 1, MPI_INT, suite.prev, 5, suite.comm, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "found the message that had been received");
}

// A probe sees the message that a receive with the same arguments would take: the first one.
static void probe_sees_the_first_match(void)
{
    int values[3] = {1, 2, 3}, in[4] = {0};
    MPI_Request requests[3];
    MPI_Status status;
    OK(MPI_Isend(values, 1, MPI_INT, suite.next, 8, suite.comm, &requests[0]));
    OK(MPI_Isend(values, 2, MPI_INT, suite.next, 9, suite.comm, &requests[1]));
    OK(MPI_Isend(values, 3, MPI_INT, suite.next, 8, suite.comm, &requests[2]));
    OK(MPI_Probe(suite.prev, 9, suite.comm, &status));
    CHECK_STATUS(status, suite.prev, 9, 2 * sizeof(int));
    OK(MPI_Probe(suite.prev, MPI_ANY_TAG, suite.comm, &status));
    CHECK_STATUS(status, suite.prev, 8, sizeof(int));
    OK(MPI_Recv(in, 4, MPI_INT, suite.prev, 8, suite.comm, &status));
    CHECK_STATUS(status, suite.prev, 8, sizeof(int));
    OK(MPI_Probe(MPI_ANY_SOURCE, 8, suite.comm, &status));
    CHECK_STATUS(status, suite.prev, 8, 3 * sizeof(int));
    OK(MPI_Recv(in, 4, MPI_INT, suite.prev, MPI_ANY_TAG, suite.comm, &status));
    CHECK_STATUS(status, suite.prev, 9, 2 * sizeof(int));
    OK(MPI_Recv(in, 4, MPI_INT, suite.prev, MPI_ANY_TAG, suite.comm, &status));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
}

static void probe_does_not_see_what_a_posted_receive_takes(void)
{
    int in[2] = {-1, -1}, out[2] = {1, 2};
    MPI_Request receive, sends[2];
    MPI_Status status;
    OK(MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 4, suite.comm, &receive));
    OK(MPI_Barrier(suite.comm));
    OK(MPI_Isend(&out[0], 1, MPI_INT, suite.next, 4, suite.comm, &sends[0]));
    OK(MPI_Isend(out, 2, MPI_INT, suite.next, 4, suite.comm, &sends[1]));
    OK(MPI_Probe(suite.prev, 4, suite.comm, &status));
    CHECK_STATUS(status, suite.prev, 4, 2 * sizeof(int));
    OK(MPI_Recv(in, 2, MPI_INT, suite.prev, 4, suite.comm, &status));
    CHECK_STATUS(status, suite.prev, 4, 2 * sizeof(int));
    OK(MPI_Wait(&receive, &status));
    CHECK_STATUS(status, suite.prev, 4, sizeof(int));
    OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
}

// ---- matching probe ----

static void a_matched_message_belongs_to_its_handle(void)
{
    static const size_t sizes[] = {0, 8, 300, 5000, 70000, 600000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t bytes = sizes[i];
        unsigned char *out[2], *in = suite_alloc(bytes);
        MPI_Request sends[2], receive;
        MPI_Message first, second;
        MPI_Status status;
        int flag = 0;
        for (int m = 0; m < 2; m++) {
            out[m] = suite_alloc(bytes);
            pattern_fill(out[m], bytes, (uint64_t) m);
            OK(MPI_Isend(out[m], (int) bytes, MPI_BYTE, suite.next, 3, suite.comm, &sends[m]));
        }
        OK(MPI_Mprobe(suite.prev, 3, suite.comm, &first, &status));
        CHECK_STATUS(status, suite.prev, 3, bytes);
        while (!flag) {
            OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm, &flag, &second, &status));
            if (!flag)
                sched_yield();
        }
        CHECK_STATUS(status, suite.prev, 3, bytes);
        OK(MPI_Improbe(suite.prev, 3, suite.comm, &flag, &(MPI_Message){MPI_MESSAGE_NULL},
                       MPI_STATUS_IGNORE));
        CHECK(!flag, "a matched message was matched again");
        OK(MPI_Iprobe(suite.prev, 3, suite.comm, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "a matched message is still probed");
        OK(MPI_Mrecv(in, (int) bytes, MPI_BYTE, &second, &status)); // out of order on purpose
        CHECK(second == MPI_MESSAGE_NULL, "MPI_Mrecv left the message handle");
        CHECK_STATUS(status, suite.prev, 3, bytes);
        CHECK_PATTERN(in, bytes, 1, "second, %zu bytes", bytes);
        OK(MPI_Imrecv(in, (int) bytes, MPI_BYTE, &first, &receive));
        CHECK(first == MPI_MESSAGE_NULL, "MPI_Imrecv left the message handle");
        OK(MPI_Wait(&receive, &status));
        CHECK_STATUS(status, suite.prev, 3, bytes);
        CHECK_PATTERN(in, bytes, 0, "first, %zu bytes", bytes);
        OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
        OK(MPI_Barrier(suite.comm)); // the next size's messages must not come among these
        free(out[0]);
        free(out[1]);
        free(in);
    }
}

static void a_matched_synchronous_send_completes_with_the_receive(void)
{
    int out = 4, in = 0, done = 0;
    MPI_Request send;
    MPI_Message message;
    OK(MPI_Issend(&out, 1, MPI_INT, suite.next, 3, suite.comm, &send));
    OK(MPI_Mprobe(suite.prev, 3, suite.comm, &message, MPI_STATUS_IGNORE));
    for (int i = 0; i < 20; i++) {
        OK(MPI_Test(&send, &done, MPI_STATUS_IGNORE));
    }
    OK(MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    CHECK(in == 4, "received %d", in);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
}

// The buffer may have gaps, as the second one has, or the message may be sent in pieces.
static void a_matched_message_outlives_its_communicator(void)
{
    static const int counts[] = {0, 2, 20000, 300000};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        int count = counts[i];
        int *out = suite_alloc((size_t) count * sizeof(int));
        int *in = suite_alloc((size_t) count * 2 * sizeof(int));
        MPI_Comm comm;
        MPI_Datatype every_second;
        MPI_Request sends[2];
        MPI_Message messages[2];
        MPI_Status status;
        OK(MPI_Comm_dup(suite.comm, &comm));
        OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_second));
        OK(MPI_Type_commit(&every_second));
        pattern_fill(out, (size_t) count * sizeof(int), 5);
        for (int m = 0; m < 2; m++) {
            OK(MPI_Isend(out, count, MPI_INT, suite.next, 3, comm, &sends[m]));
            OK(MPI_Mprobe(suite.prev, 3, comm, &messages[m], MPI_STATUS_IGNORE));
        }
        OK(MPI_Comm_free(&comm));
        OK(MPI_Mrecv(in, count, MPI_INT, &messages[0], &status));
        CHECK_STATUS(status, suite.prev, 3, (size_t) count * sizeof(int));
        CHECK_PATTERN(in, (size_t) count * sizeof(int), 5, "%d integers", count);
        OK(MPI_Mrecv(in, count, every_second, &messages[1], &status));
        CHECK_STATUS(status, suite.prev, 3, (size_t) count * sizeof(int));
        for (int k = 0; k < count; k++)
            CHECK(in[2 * k] == out[k], "integer %d of %d", k, count);
        OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
        OK(MPI_Type_free(&every_second));
        free(out);
        free(in);
    }
}

// ---- cancel ----

static void cancelled_receives_leave_messages_for_others(void)
{
    enum { RECEIVES = 50 };
    int in[RECEIVES], out = 9, got = 0;
    MPI_Request requests[RECEIVES];
    MPI_Status status;
    for (int i = 0; i < RECEIVES; i++) {
        in[i] = -1;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : suite.prev,
                     i % 3 ? MPI_ANY_TAG : 6, suite.comm, &requests[i]));
    }
    for (int i = RECEIVES - 1; i >= 0; i -= 1) {
        int k = (i * 7) % RECEIVES, cancelled = 0;
        OK(MPI_Cancel(&requests[k]));
        OK(MPI_Wait(&requests[k], &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        CHECK(cancelled, "receive %d was not cancelled although nothing was sent", k);
    }
    OK(MPI_Barrier(suite.comm));
    OK(MPI_Sendrecv(&out, 1, MPI_INT, suite.next, 6, &got, 1, MPI_INT, suite.prev, 6, suite.comm,
                    &status));
    CHECK_STATUS(status, suite.prev, 6, sizeof got);
    for (int i = 0; i < RECEIVES; i++)
        CHECK(in[i] == -1, "cancelled receive %d was filled", i);
}

// Either it is cancelled and the message is there for another receive, or it is received.
static void cancel_races_with_arrival_either_way(void)
{
    for (int round = 0; round < 200; round++) {
        int in = -1, out = round, cancelled = 0;
        MPI_Request receive;
        MPI_Status status;
        OK(MPI_Irecv(&in, 1, MPI_INT, suite.prev, 2, suite.comm, &receive));
        OK(MPI_Send(&out, 1, MPI_INT, suite.next, 2, suite.comm));
        OK(MPI_Cancel(&receive));
        OK(MPI_Wait(&receive, &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        if (cancelled)
            OK(MPI_Recv(&in, 1, MPI_INT, suite.prev, 2, suite.comm, MPI_STATUS_IGNORE));
        CHECK(in == round, "round %d received %d (cancelled %d)", round, in, cancelled);
    }
}

static void a_cancelled_persistent_receive_can_start_again(void)
{
    int in = -1, out = 31, cancelled = 0;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Recv_init(&in, 1, MPI_INT, suite.prev, 2, suite.comm, &request));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Start(&request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        CHECK(cancelled, "not cancelled");
    }
    OK(MPI_Barrier(suite.comm));
    OK(MPI_Start(&request));
    OK(MPI_Send(&out, 1, MPI_INT, suite.next, 2, suite.comm));
    OK(MPI_Wait(&request, &status));
    CHECK_STATUS(status, suite.prev, 2, sizeof in);
    CHECK(in == 31, "received %d", in);
    OK(MPI_Request_free(&request));
}

// A send whose cancellation is asked for completes either way; if it was not cancelled it arrives.
static void cancel_of_a_send_is_local_and_ends(void)
{
    int out = 8, in = -1, cancelled = 0, told = 0;
    MPI_Request send;
    MPI_Status status;
    OK(MPI_Isend(&out, 1, MPI_INT, suite.next, 2, suite.comm, &send));
    suite_at(__FILE__, __LINE__, "MPI_Cancel of a send");
    int rc = MPI_Cancel(&send); // Open MPI may say that it is not supported
    OK(MPI_Wait(&send, &status));
    if (rc == MPI_SUCCESS)
        OK(MPI_Test_cancelled(&status, &cancelled));
    OK(MPI_Sendrecv(&cancelled, 1, MPI_INT, suite.next, 3, &told, 1, MPI_INT, suite.prev, 3,
                    suite.comm, MPI_STATUS_IGNORE));
    if (!told) {
        OK(MPI_Recv(&in, 1, MPI_INT, suite.prev, 2, suite.comm, MPI_STATUS_IGNORE));
        CHECK(in == 8, "received %d", in);
    }
}

static void cancelling_a_finished_receive_does_nothing(void)
{
    int in = -1, out = 12, cancelled = 1;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(&in, 1, MPI_INT, suite.prev, 2, suite.comm, &request));
    OK(MPI_Send(&out, 1, MPI_INT, suite.next, 2, suite.comm));
    int flag = 0;
    while (!flag) {
        OK(MPI_Request_get_status(request, &flag, &status));
        if (!flag)
            sched_yield();
    }
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(!cancelled && in == 12, "cancelled %d, value %d", cancelled, in);
}

// ---- persistent requests ----

static void persistent_requests_start_again_and_again(void)
{
    static const size_t sizes[] = {0, 8, 256, 4096, 33000, 200000};
    int rounds = suite.oversubscribed ? 20 : 100;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t bytes = sizes[i];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Request requests[2];
        OK(MPI_Recv_init(in, (int) bytes, MPI_BYTE, suite.prev, 0, suite.comm, &requests[0]));
        OK(MPI_Send_init(out, (int) bytes, MPI_BYTE, suite.next, 0, suite.comm, &requests[1]));
        for (int round = 0; round < rounds; round++) {
            MPI_Status statuses[2];
            pattern_fill(out, bytes, (uint64_t) round);
            memset(in, 0, bytes);
            OK(MPI_Startall(2, requests));
            OK(MPI_Waitall(2, requests, statuses));
            CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL,
                  "a persistent request became null");
            CHECK_STATUS(statuses[0], suite.prev, 0, bytes);
            CHECK_PATTERN(in, bytes, (uint64_t) round, "round %d, %zu bytes", round, bytes);
        }
        OK(MPI_Request_free(&requests[0]));
        OK(MPI_Request_free(&requests[1]));
        free(out);
        free(in);
    }
}

// Started again in the very moment that another thread, which completed them, lets go of them.
static void persistent_requests_start_again_at_once(void)
{
    int rounds = suite.oversubscribed ? 50 : 500, in[2] = {-1, -1}, out = 0;
    int room = rounds * ((int) sizeof(int) + MPI_BSEND_OVERHEAD);
    unsigned char *buffer = suite_alloc((size_t) room);
    MPI_Request requests[4];
    OK(MPI_Buffer_attach(buffer, room));
    OK(MPI_Recv_init(&in[0], 1, MPI_INT, suite.prev, 0, suite.comm, &requests[0]));
    OK(MPI_Recv_init(&in[1], 1, MPI_INT, suite.prev, 1, suite.comm, &requests[1]));
    OK(MPI_Send_init(&out, 1, MPI_INT, suite.next, 0, suite.comm, &requests[2]));
    OK(MPI_Bsend_init(&out, 1, MPI_INT, suite.next, 1, suite.comm, &requests[3]));
    for (out = 0; out < rounds; out++) {
        OK(MPI_Startall(4, requests));
        OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        CHECK(in[0] == out && in[1] == out, "round %d received %d and %d", out, in[0], in[1]);
    }
    for (int i = 0; i < 4; i++)
        OK(MPI_Request_free(&requests[i]));
    OK(MPI_Buffer_detach(&buffer, &room));
    free(buffer);
}

static void inactive_persistent_requests_are_complete(void)
{
    int in = 0, flag = 0, index = 0;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Recv_init(&in, 1, MPI_INT, suite.prev, 0, suite.comm, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test(&request, &flag, &status));
    CHECK(flag, "MPI_Test of an inactive request");
    OK(MPI_Waitany(1, &request, &index, &status));
    CHECK(index == MPI_UNDEFINED, "MPI_Waitany of an inactive request gave %d", index);
    OK(MPI_Request_free(&request));
}

static void persistent_and_other_operations_match(void)
{
    int in = -1, out = 3;
    MPI_Request persistent, send;
    OK(MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm, &persistent));
    for (int i = 0; i < 20; i++) {
        out = i;
        OK(MPI_Start(&persistent));
        OK(MPI_Isend(&out, 1, MPI_INT, suite.next, i, suite.comm, &send));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
        CHECK(in == i, "round %d received %d", i, in);
    }
    OK(MPI_Request_free(&persistent));
}

static void a_freed_active_persistent_send_delivers(void)
{
    enum { BYTES = 80000 };
    unsigned char *out = suite_alloc(BYTES), *in = suite_alloc(BYTES);
    MPI_Request request;
    pattern_fill(out, BYTES, 3);
    OK(MPI_Send_init(out, BYTES, MPI_BYTE, suite.next, 0, suite.comm, &request));
    OK(MPI_Start(&request));
    OK(MPI_Request_free(&request));
    OK(MPI_Recv(in, BYTES, MPI_BYTE, suite.prev, 0, suite.comm, MPI_STATUS_IGNORE));
    CHECK_PATTERN(in, BYTES, 3, "message");
    OK(MPI_Barrier(suite.comm));
    free(out);
    free(in);
}

// ---- generalized requests in one list with ours ----

static int grequest_query(void *state, MPI_Status *status)
{
    (void) state;
    MPI_Status_set_elements(status, MPI_BYTE, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 17;
    status->MPI_TAG = 18;
    return MPI_SUCCESS;
}

static int grequest_free(void *state)
{
    *(int *) state += 1;
    return MPI_SUCCESS;
}

static int grequest_cancel(void *state, int complete)
{
    (void) state, (void) complete;
    return MPI_SUCCESS;
}

static void generalized_requests_stand_beside_messages(void)
{
    int freed = 0, in = -1, out = 6;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    OK(MPI_Irecv(&in, 1, MPI_INT, suite.prev, 0, suite.comm, &requests[0]));
    OK(MPI_Grequest_start(grequest_query, grequest_free, grequest_cancel, &freed, &requests[1]));
    OK(MPI_Isend(&out, 1, MPI_INT, suite.next, 0, suite.comm, &requests[2]));
    OK(MPI_Grequest_complete(requests[1]));
    OK(MPI_Waitall(3, requests, statuses));
    CHECK(freed == 1, "the free function ran %d times", freed);
    CHECK(in == 6, "received %d", in);
    CHECK_STATUS(statuses[0], suite.prev, 0, sizeof in);
    CHECK(statuses[1].MPI_SOURCE == 17 && statuses[1].MPI_TAG == 18,
          "the generalized request's status: source %d tag %d", statuses[1].MPI_SOURCE,
          statuses[1].MPI_TAG);
}

#define COMPLETION "Point-to-Point, Multiple Completions"
#define PROBE      "Point-to-Point, Probe"
#define MPROBE     "Point-to-Point, Matching Probe and Matched Receives"
#define CANCEL     "Point-to-Point, Cancel"
#define PERSISTENT "Point-to-Point, Persistent Communication Requests"

static const struct suite_case cases[] = {
    {"waitall_completes_all", COMPLETION, waitall_completes_all, 1},
    {"waitany_gives_each_once", COMPLETION, waitany_gives_each_once, 1},
    {"waitsome_completes_at_least_one", COMPLETION, waitsome_completes_at_least_one, 1},
    {"testsome_completes_all_in_the_end", COMPLETION, testsome_completes_all_in_the_end, 1},
    {"testall_is_all_or_nothing", COMPLETION, testall_is_all_or_nothing, 1},
    {"testany_and_test_complete_in_the_end", COMPLETION, testany_and_test_complete_in_the_end, 1},
    {"get_status_does_not_free", "Point-to-Point, Non-Destructive Test of status",
     get_status_does_not_free, 1},
    {"null_requests_are_complete_and_empty", "Point-to-Point, Communication Completion",
     null_requests_are_complete_and_empty, 1},
    {"freed_sends_still_deliver", "Point-to-Point, Communication Completion",
     freed_sends_still_deliver, 1},
    {"a_freed_receive_is_still_filled", "Point-to-Point, Communication Completion",
     a_freed_receive_is_still_filled, 1},
    {"many_requests_at_once", "Point-to-Point, Semantics of Nonblocking Communications",
     many_requests_at_once, 1},
    {"probe_tells_without_receiving", PROBE, probe_tells_without_receiving, 1},
    {"iprobe_finds_what_was_sent_in_the_end", PROBE, iprobe_finds_what_was_sent_in_the_end, 1},
    {"probe_sees_the_first_match", PROBE, probe_sees_the_first_match, 1},
    {"probe_does_not_see_what_a_posted_receive_takes", PROBE,
     probe_does_not_see_what_a_posted_receive_takes, 1},
    {"a_matched_message_belongs_to_its_handle", MPROBE, a_matched_message_belongs_to_its_handle, 1},
    {"a_matched_synchronous_send_completes_with_the_receive", MPROBE,
     a_matched_synchronous_send_completes_with_the_receive, 1},
    {"a_matched_message_outlives_its_communicator", MPROBE,
     a_matched_message_outlives_its_communicator, 1},
    {"cancelled_receives_leave_messages_for_others", CANCEL,
     cancelled_receives_leave_messages_for_others, 1},
    {"cancel_races_with_arrival_either_way", CANCEL, cancel_races_with_arrival_either_way, 1},
    {"a_cancelled_persistent_receive_can_start_again", CANCEL,
     a_cancelled_persistent_receive_can_start_again, 1},
    {"cancel_of_a_send_is_local_and_ends", CANCEL, cancel_of_a_send_is_local_and_ends, 1},
    {"cancelling_a_finished_receive_does_nothing", CANCEL,
     cancelling_a_finished_receive_does_nothing, 1},
    {"persistent_requests_start_again_and_again", PERSISTENT,
     persistent_requests_start_again_and_again, 1},
    {"persistent_requests_start_again_at_once", PERSISTENT, persistent_requests_start_again_at_once,
     1},
    {"inactive_persistent_requests_are_complete", PERSISTENT,
     inactive_persistent_requests_are_complete, 1},
    {"persistent_and_other_operations_match", PERSISTENT, persistent_and_other_operations_match, 1},
    {"a_freed_active_persistent_send_delivers", PERSISTENT, a_freed_active_persistent_send_delivers,
     1},
    {"generalized_requests_stand_beside_messages", "External Interfaces, Generalized Requests",
     generalized_requests_stand_beside_messages, 1},
};

const struct suite_chapter suite_request = {"request", cases, COUNT_OF(cases)};
