// SPDX-License-Identifier: BSD-3-Clause
// Conformance, chapter Point-to-Point Communication: send modes, envelopes, status, ordering,
// send-receive and null processes.
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGEST = 8 << 20, UNTOUCHED = 0xA5 };

// ---- the send modes, in every way a send can be started ----

typedef int send_function(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int start_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static const struct mode {
    const char *name;
    send_function *blocking;
    start_function *immediate, *persistent;
    bool needs_posted_receive;
} modes[] = {
    {"standard", MPI_Send, MPI_Isend, MPI_Send_init, false},
    {"buffered", MPI_Bsend, MPI_Ibsend, MPI_Bsend_init, false},
    {"synchronous", MPI_Ssend, MPI_Issend, MPI_Ssend_init, false},
    {"ready", MPI_Rsend, MPI_Irsend, MPI_Rsend_init, true},
};

enum how { BLOCKING, IMMEDIATE, PERSISTENT, HOW_COUNT };
static const char *const how_names[] = {"blocking", "immediate", "persistent"};

static void *attached;

static void buffer_attach(size_t bytes)
{
    attached = suite_alloc(bytes + 16 * MPI_BSEND_OVERHEAD);
    OK(MPI_Buffer_attach(attached, (int) (bytes + 16 * MPI_BSEND_OVERHEAD)));
}

static void buffer_detach(void)
{
    void *was = NULL;
    int size = 0;
    OK(MPI_Buffer_detach(&was, &size));
    CHECK(was == attached, "MPI_Buffer_detach returned another address");
    free(attached);
}

static uint64_t key_of(int source, int destination, size_t bytes, int variant)
{
    return (uint64_t) source * 1000003u + (uint64_t) destination * 7919u + bytes * 31u +
           (uint64_t) variant * 0x100000001B3u;
}

static void start_send(const struct mode *mode, enum how how, const void *buffer, size_t bytes,
                       int destination, int tag, MPI_Request *request)
{
    int count = (int) bytes;
    *request = MPI_REQUEST_NULL;
    if (how == BLOCKING) {
        OK(mode->blocking(buffer, count, MPI_BYTE, destination, tag, suite.comm));
    } else if (how == IMMEDIATE) {
        OK(mode->immediate(buffer, count, MPI_BYTE, destination, tag, suite.comm, request));
    } else {
        OK(mode->persistent(buffer, count, MPI_BYTE, destination, tag, suite.comm, request));
        OK(MPI_Start(request));
    }
}

static void finish_send(enum how how, MPI_Request *request)
{
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    if (how == PERSISTENT)
        OK(MPI_Request_free(request));
}

// Around the ring with the receive posted before the send starts.
static void ring_posted(const struct mode *mode, enum how how, unsigned char *out,
                        unsigned char *in, size_t bytes)
{
    int tag = 100 + how;
    MPI_Request receive, send, ready_receive;
    MPI_Status status;
    pattern_fill(out, bytes, key_of(suite.rank, suite.next, bytes, tag));
    memset(in, UNTOUCHED, bytes + 8);
    OK(MPI_Irecv(NULL, 0, MPI_BYTE, suite.next, 1, suite.comm, &ready_receive));
    OK(MPI_Irecv(in, (int) bytes + 4, MPI_BYTE, suite.prev, tag, suite.comm, &receive));
    OK(MPI_Send(NULL, 0, MPI_BYTE, suite.prev, 1, suite.comm));
    OK(MPI_Wait(&ready_receive, MPI_STATUS_IGNORE));
    start_send(mode, how, out, bytes, suite.next, tag, &send);
    OK(MPI_Wait(&receive, &status));
    finish_send(how, &send);
    CHECK_STATUS(status, suite.prev, tag, bytes);
    CHECK_PATTERN(in, bytes, key_of(suite.prev, suite.rank, bytes, tag), "%s %s, %zu bytes",
                  how_names[how], mode->name, bytes);
    CHECK(all_bytes_are(in + bytes, 8, UNTOUCHED), "%s %s, %zu bytes: wrote behind the message",
          how_names[how], mode->name, bytes);
}

// Immediate sends whose message is unexpected: the receiver first takes a later message.
static void ring_unexpected(const struct mode *mode, enum how how, unsigned char *out,
                            unsigned char *in, size_t bytes)
{
    int tag = 200 + how;
    MPI_Request send, marker;
    MPI_Status status;
    pattern_fill(out, bytes, key_of(suite.rank, suite.next, bytes, tag));
    memset(in, UNTOUCHED, bytes + 8);
    start_send(mode, how, out, bytes, suite.next, tag, &send);
    OK(MPI_Isend(NULL, 0, MPI_BYTE, suite.next, 2, suite.comm, &marker));
    OK(MPI_Recv(NULL, 0, MPI_BYTE, suite.prev, 2, suite.comm, MPI_STATUS_IGNORE));
    OK(MPI_Recv(in, (int) bytes, MPI_BYTE, suite.prev, tag, suite.comm, &status));
    OK(MPI_Wait(&marker, MPI_STATUS_IGNORE));
    finish_send(how, &send);
    CHECK_STATUS(status, suite.prev, tag, bytes);
    CHECK_PATTERN(in, bytes, key_of(suite.prev, suite.rank, bytes, tag),
                  "unexpected %s %s, %zu bytes", how_names[how], mode->name, bytes);
    CHECK(all_bytes_are(in + bytes, 8, UNTOUCHED), "unexpected %s %s, %zu bytes: wrote behind",
          how_names[how], mode->name, bytes);
}

static void mode_over_all_sizes(const struct mode *mode)
{
    unsigned char *out = suite_alloc(LARGEST + 64), *in = suite_alloc(LARGEST + 64);
    size_t count = suite_size_count_below(suite.oversubscribed ? 1 << 20 : LARGEST);
    bool buffered = mode->blocking == MPI_Bsend;
    if (buffered)
        buffer_attach(2 * (size_t) LARGEST);
    for (int how = BLOCKING; how < HOW_COUNT; how++) {
        for (size_t i = 0; i < count; i++) {
            // an odd address now and then: alignment must not matter
            size_t shift = i % 3;
            ring_posted(mode, how, out + shift, in + 2 * shift, suite_sizes[i]);
            if (!mode->needs_posted_receive && (how != BLOCKING || buffered))
                ring_unexpected(mode, how, out + shift, in + shift, suite_sizes[i]);
        }
    }
    if (buffered)
        buffer_detach();
    free(out);
    free(in);
}

static void standard_mode_delivers_every_size(void)
{
    mode_over_all_sizes(&modes[0]);
}

static void buffered_mode_delivers_every_size(void)
{
    mode_over_all_sizes(&modes[1]);
}

static void synchronous_mode_delivers_every_size(void)
{
    mode_over_all_sizes(&modes[2]);
}

static void ready_mode_delivers_every_size(void)
{
    mode_over_all_sizes(&modes[3]);
}

static void blocking_sends_find_late_receives(void)
{
    size_t count = suite_size_count_below(1 << 20);
    unsigned char *buffer = suite_alloc(1 << 20);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = suite_sizes[i];
        for (int synchronous = 0; synchronous < 2; synchronous++) {
            send_function *send = synchronous ? MPI_Ssend : MPI_Send;
            if (suite.rank % 2 == 0 && suite.rank + 1 < suite.size) {
                pattern_fill(buffer, bytes, bytes);
                OK(send(buffer, (int) bytes, MPI_BYTE, suite.rank + 1, 3, suite.comm));
            } else if (suite.rank % 2 == 1) {
                MPI_Status status;
                OK(MPI_Recv(buffer, (int) bytes, MPI_BYTE, suite.rank - 1, 3, suite.comm, &status));
                CHECK_STATUS(status, suite.rank - 1, 3, bytes);
                CHECK_PATTERN(buffer, bytes, bytes, "%zu bytes", bytes);
            }
        }
    }
    free(buffer);
}

// A buffered send completes whether or not a receive exists, and the buffer may be used at once.
static void buffered_send_is_local(void)
{
    enum { MESSAGES = 20, BYTES = 30000 };
    unsigned char *data = suite_alloc(BYTES);
    buffer_attach((size_t) MESSAGES * (BYTES + MPI_BSEND_OVERHEAD + 64));
    for (int i = 0; i < MESSAGES; i++) {
        pattern_fill(data, BYTES, (uint64_t) i);
        OK(MPI_Bsend(data, BYTES, MPI_BYTE, suite.next, i, suite.comm));
        memset(data, 0, BYTES);
    }
    OK(MPI_Barrier(suite.comm));
    for (int i = MESSAGES - 1; i >= 0; i--) {
        OK(MPI_Recv(data, BYTES, MPI_BYTE, suite.prev, i, suite.comm, MPI_STATUS_IGNORE));
        CHECK_PATTERN(data, BYTES, (uint64_t) i, "message %d", i);
    }
    buffer_detach();
    free(data);
}

// MPI_Buffer_detach returns when all that was buffered has left.
static void buffer_detach_waits_for_delivery(void)
{
    enum { BYTES = 200000 };
    unsigned char *data = suite_alloc(BYTES);
    buffer_attach(BYTES);
    MPI_Request receive = MPI_REQUEST_NULL;
    unsigned char *in = suite_alloc(BYTES);
    pattern_fill(data, BYTES, (uint64_t) suite.rank);
    OK(MPI_Bsend(data, BYTES, MPI_BYTE, suite.next, 0, suite.comm));
    OK(MPI_Irecv(in, BYTES, MPI_BYTE, suite.prev, 0, suite.comm, &receive));
    void *was = NULL;
    int size = 0;
    OK(MPI_Buffer_detach(&was, &size));
    CHECK(was == attached && size >= BYTES, "detach gave %p, %d bytes", was, size);
    memset(attached, 0xEE, BYTES);
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    CHECK_PATTERN(in, BYTES, (uint64_t) suite.prev, "after detach");
    free(attached);
    free(data);
    free(in);
}

static void buffered_send_without_room_is_an_error(void)
{
    unsigned char small[4096], data[8192] = {0};
    OK(MPI_Buffer_attach(small, sizeof small));
    EXPECT_CLASS(MPI_Bsend(data, sizeof data, MPI_BYTE, suite.rank, 0, suite.comm), MPI_ERR_BUFFER);
    void *was;
    int size;
    OK(MPI_Buffer_detach(&was, &size));
}

#if SUITE_MPI_4_1
static void communicator_and_session_buffers_serve(void)
{
    enum { BYTES = 5000 };
    unsigned char *room = suite_alloc(2 * (BYTES + MPI_BSEND_OVERHEAD) + 4096);
    unsigned char data[BYTES], in[BYTES];
    OK(MPI_Comm_attach_buffer(suite.comm, room, 2 * (BYTES + MPI_BSEND_OVERHEAD) + 4096));
    for (int i = 0; i < 10; i++) {
        pattern_fill(data, BYTES, (uint64_t) i);
        OK(MPI_Bsend(data, BYTES, MPI_BYTE, suite.next, 0, suite.comm));
        OK(MPI_Recv(in, BYTES, MPI_BYTE, suite.prev, 0, suite.comm, MPI_STATUS_IGNORE));
        CHECK_PATTERN(in, BYTES, (uint64_t) i, "communicator buffer");
        OK(MPI_Comm_flush_buffer(suite.comm));
    }
    void *was = NULL;
    int size = 0;
    OK(MPI_Comm_detach_buffer(suite.comm, &was, &size));
    CHECK(was == room, "MPI_Comm_detach_buffer returned another address");
    free(room);
}

static void automatic_buffers_serve(void)
{
    enum { BYTES = 70000 };
    unsigned char *data = suite_alloc(BYTES), *in = suite_alloc(BYTES);
    OK(MPI_Comm_attach_buffer(suite.comm, MPI_BUFFER_AUTOMATIC, 0));
    for (int i = 0; i < 8; i++) {
        pattern_fill(data, BYTES, (uint64_t) i);
        OK(MPI_Bsend(data, BYTES, MPI_BYTE, suite.next, i, suite.comm));
    }
    for (int i = 0; i < 8; i++) {
        OK(MPI_Recv(in, BYTES, MPI_BYTE, suite.prev, i, suite.comm, MPI_STATUS_IGNORE));
        CHECK_PATTERN(in, BYTES, (uint64_t) i, "automatic buffer");
    }
    void *was = NULL;
    int size = 0;
    OK(MPI_Comm_detach_buffer(suite.comm, &was, &size));
    free(data);
    free(in);
}
#endif

// A synchronous send does not complete before the receive has started.
static void synchronous_send_waits_for_the_receive(void)
{
    for (size_t i = 0; i < suite_size_count_below(70000); i += 3) {
        size_t bytes = suite_sizes[i];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Request request;
        int done = 0;
        OK(MPI_Issend(out, (int) bytes, MPI_BYTE, suite.next, 9, suite.comm, &request));
        for (int k = 0; k < 50; k++) {
            OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            CHECK(!done, "%zu bytes: complete before the receive started", bytes);
            if (done)
                break;
        }
        OK(MPI_Barrier(suite.comm)); // no rank receives before all have looked
        OK(MPI_Recv(in, (int) bytes, MPI_BYTE, suite.prev, 9, suite.comm, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        free(out);
        free(in);
    }
}

// ---- envelopes and status ----

static void the_tag_selects_the_message(void)
{
    enum { MESSAGES = 64 };
    int out[MESSAGES], in = -1;
    MPI_Request requests[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        out[i] = i * 17 + suite.rank;
        OK(MPI_Isend(&out[i], 1, MPI_INT, suite.next, i, suite.comm, &requests[i]));
    }
    for (int i = 0; i < MESSAGES; i++) {
        int tag = (i * 37) % MESSAGES; // any order
        MPI_Status status;
        OK(MPI_Recv(&in, 1, MPI_INT, suite.prev, tag, suite.comm, &status));
        CHECK(in == tag * 17 + suite.prev, "tag %d brought %d", tag, in);
        CHECK_STATUS(status, suite.prev, tag, sizeof(int));
    }
    OK(MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE));
}

static void the_largest_tag_works(void)
{
    int *upper = NULL, found = 0, in = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &found));
    CHECK(found && *upper >= 32767, "MPI_TAG_UB is missing or below 32767");
    int tags[] = {0, 1, 255, 256, 32767, *upper - 1, *upper};
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        MPI_Status status;
        OK(MPI_Sendrecv(&tags[i], 1, MPI_INT, suite.next, tags[i], &in, 1, MPI_INT, suite.prev,
                        tags[i], suite.comm, &status));
        CHECK(in == tags[i], "tag %d brought %d", tags[i], in);
        CHECK_STATUS(status, suite.prev, tags[i], sizeof(int));
    }
}

static void any_source_and_any_tag_report_what_came(void)
{
    int expected = 3 * (suite.size - 1), out[3], in;
    if (suite.rank != 0) {
        for (int i = 0; i < 3; i++) {
            out[i] = suite.rank * 10 + i;
            OK(MPI_Send(&out[i], 1, MPI_INT, 0, suite.rank * 100 + i, suite.comm));
        }
        return;
    }
    int *sent = calloc((size_t) suite.size, sizeof *sent);
    for (int i = 0; i < expected; i++) {
        MPI_Status status;
        OK(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm, &status));
        int source = status.MPI_SOURCE;
        CHECK(source > 0 && source < suite.size, "source %d", source);
        if (source <= 0 || source >= suite.size)
            break;
        CHECK(status.MPI_TAG == source * 100 + sent[source],
              "message %d of rank %d has tag %d: overtaken", sent[source], source, status.MPI_TAG);
        CHECK(in == source * 10 + sent[source], "rank %d's message %d brought %d", source,
              sent[source], in);
        sent[source]++;
    }
    free(sent);
}

static void any_source_with_a_tag_leaves_the_others(void)
{
    int in = 0, value = suite.rank;
    MPI_Request requests[2];
    OK(MPI_Isend(&value, 1, MPI_INT, 0, 7, suite.comm, &requests[0]));
    OK(MPI_Isend(&value, 1, MPI_INT, 0, 8, suite.comm, &requests[1]));
    if (suite.rank == 0) {
        int sum = 0;
        for (int i = 0; i < suite.size; i++) {
            MPI_Status status;
            OK(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 8, suite.comm, &status));
            CHECK(in == status.MPI_SOURCE && status.MPI_TAG == 8, "got %d from %d tag %d", in,
                  status.MPI_SOURCE, status.MPI_TAG);
            sum += in;
        }
        CHECK(sum == suite.size * (suite.size - 1) / 2, "sum %d", sum);
        for (int i = 0; i < suite.size; i++) {
            OK(MPI_Recv(&in, 1, MPI_INT, i, MPI_ANY_TAG, suite.comm, MPI_STATUS_IGNORE));
            CHECK(in == i, "rank %d's tag 7 brought %d", i, in);
        }
    }
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

static void any_tag_does_not_see_collective_traffic(void)
{
    int in = -1, value = 42, root = 0;
    MPI_Request request;
    OK(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm, &request));
    for (int i = 0; i < 10; i++) {
        int data = i;
        OK(MPI_Bcast(&data, 1, MPI_INT, root, suite.comm));
        OK(MPI_Barrier(suite.comm));
        CHECK(data == i, "broadcast brought %d", data);
    }
    OK(MPI_Send(&value, 1, MPI_INT, suite.next, 5, suite.comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(in == 42, "the wildcard receive took %d", in);
}

static void a_shorter_message_leaves_the_rest_untouched(void)
{
    for (size_t i = 0; i < suite_size_count_below(1 << 20); i += 2) {
        size_t bytes = suite_sizes[i], room = bytes + bytes / 2 + 100;
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(room);
        MPI_Status status;
        pattern_fill(out, bytes, bytes);
        memset(in, UNTOUCHED, room);
        OK(MPI_Sendrecv(out, (int) bytes, MPI_BYTE, suite.next, 0, in, (int) room, MPI_BYTE,
                        suite.prev, 0, suite.comm, &status));
        CHECK_STATUS(status, suite.prev, 0, bytes);
        CHECK_PATTERN(in, bytes, bytes, "%zu bytes", bytes);
        CHECK(all_bytes_are(in + bytes, room - bytes, UNTOUCHED), "%zu bytes: wrote behind", bytes);
        free(out);
        free(in);
    }
}

static void get_count_and_get_elements_tell_partial_items(void)
{
    int out[3] = {1, 2, 3}, in[4] = {0}, count = 0;
    MPI_Datatype pair;
    MPI_Status status;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Sendrecv(out, 3, MPI_INT, suite.next, 0, in, 2, pair, suite.prev, 0, suite.comm,
                    &status));
    OK(MPI_Get_count(&status, pair, &count));
    CHECK(count == MPI_UNDEFINED, "MPI_Get_count gave %d for one and a half items", count);
    OK(MPI_Get_elements(&status, pair, &count));
    CHECK(count == 3, "MPI_Get_elements gave %d", count);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 3, "MPI_Get_count of MPI_INT gave %d", count);
    MPI_Count many = 0;
#if SUITE_MPI_4_1
    OK(MPI_Get_elements_c(&status, pair, &many));
#else
    OK(MPI_Get_elements_x(&status, pair, &many));
#endif
    CHECK(many == 3, "MPI_Get_elements_x gave %lld", (long long) many);
    OK(MPI_Type_free(&pair));
}

static void the_error_field_is_left_alone_by_single_completions(void)
{
    int in = 0, out = 1;
    MPI_Status status = {.MPI_ERROR = 4711};
    MPI_Request request;
    OK(MPI_Isend(&out, 1, MPI_INT, suite.next, 0, suite.comm, &request));
    OK(MPI_Recv(&in, 1, MPI_INT, suite.prev, 0, suite.comm, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(status.MPI_ERROR == 4711, "MPI_Recv set MPI_ERROR to %d", status.MPI_ERROR);

    MPI_Message message;
    int found = 0;
    OK(MPI_Isend(&out, 1, MPI_INT, suite.next, 0, suite.comm, &request));
    OK(MPI_Probe(suite.prev, 0, suite.comm, &status));
    CHECK(status.MPI_ERROR == 4711, "MPI_Probe set MPI_ERROR to %d", status.MPI_ERROR);
    OK(MPI_Iprobe(suite.prev, 0, suite.comm, &found, &status));
    CHECK(found && status.MPI_ERROR == 4711, "MPI_Iprobe set MPI_ERROR to %d", status.MPI_ERROR);
    OK(MPI_Mprobe(suite.prev, 0, suite.comm, &message, &status));
    CHECK(status.MPI_ERROR == 4711, "MPI_Mprobe set MPI_ERROR to %d", status.MPI_ERROR);
    OK(MPI_Mrecv(&in, 1, MPI_INT, &message, &status));
    CHECK(status.MPI_ERROR == 4711, "MPI_Mrecv set MPI_ERROR to %d", status.MPI_ERROR);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

// ---- order, progress, resources ----

static void messages_do_not_overtake(void)
{
    enum { MESSAGES = 400 };
    static const size_t mixed[] = {0, 8, 5000, 100, 70000, 1, 300000, 4096, 33000, 64};
    unsigned char *out[MESSAGES], *in = suite_alloc(300000);
    MPI_Request requests[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        size_t bytes = mixed[(size_t) i % COUNT_OF(mixed)];
        out[i] = suite_alloc(bytes);
        pattern_fill(out[i], bytes, (uint64_t) i);
        OK(MPI_Isend(out[i], (int) bytes, MPI_BYTE, suite.next, 11, suite.comm, &requests[i]));
    }
    for (int i = 0; i < MESSAGES; i++) {
        size_t bytes = mixed[(size_t) i % COUNT_OF(mixed)];
        MPI_Status status;
        int source = i % 3 == 0 ? MPI_ANY_SOURCE : suite.prev;
        int tag = i % 5 == 0 ? MPI_ANY_TAG : 11;
        OK(MPI_Recv(in, 300000, MPI_BYTE, source, tag, suite.comm, &status));
        CHECK_STATUS(status, suite.prev, 11, bytes);
        CHECK_PATTERN(in, bytes, (uint64_t) i, "message %d", i);
    }
    OK(MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MESSAGES; i++)
        free(out[i]);
    free(in);
}

// Two matching receives posted in succession: the first takes the first message.
static void posted_receives_match_in_order(void)
{
    enum { RECEIVES = 300 };
    int in[RECEIVES], out;
    MPI_Request requests[RECEIVES];
    for (int i = 0; i < RECEIVES; i++) {
        int source = i % 4 == 1 ? MPI_ANY_SOURCE : suite.prev;
        int tag = i % 3 == 1 ? MPI_ANY_TAG : 4;
        in[i] = -1;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, source, tag, suite.comm, &requests[i]));
    }
    OK(MPI_Barrier(suite.comm));
    for (out = 0; out < RECEIVES; out++)
        OK(MPI_Send(&out, 1, MPI_INT, suite.next, 4, suite.comm));
    OK(MPI_Waitall(RECEIVES, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < RECEIVES; i++)
        CHECK(in[i] == i, "receive %d took message %d", i, in[i]);
}

// A specific receive posted before or after a wildcard: the earlier one wins, whatever its kind.
static void wildcards_and_specific_receives_share_one_order(void)
{
    for (int round = 0; round < 16; round++) {
        int in[4] = {-1, -1, -1, -1}, out[4] = {0, 1, 2, 3};
        MPI_Request requests[4];
        for (int i = 0; i < 4; i++) {
            int source = round & (1 << i) ? MPI_ANY_SOURCE : suite.prev;
            int tag = (round ^ 5) & (1 << i) ? MPI_ANY_TAG : 1;
            OK(MPI_Irecv(&in[i], 1, MPI_INT, source, tag, suite.comm, &requests[i]));
        }
        OK(MPI_Barrier(suite.comm));
        for (int i = 0; i < 4; i++)
            OK(MPI_Send(&out[i], 1, MPI_INT, suite.next, 1, suite.comm));
        OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 4; i++)
            CHECK(in[i] == i, "round %d: receive %d took message %d", round, i, in[i]);
    }
}

static void many_unexpected_messages_are_kept(void)
{
    int messages = suite.thorough ? 20000 : 3000, out, in;
    MPI_Request *requests = suite_alloc((size_t) messages * sizeof *requests);
    int *values = suite_alloc((size_t) messages * sizeof *values);
    for (out = 0; out < messages; out++) {
        values[out] = out;
        OK(MPI_Isend(&values[out], 1, MPI_INT, suite.next, out % 100, suite.comm, &requests[out]));
    }
    OK(MPI_Barrier(suite.comm));
    for (int tag = 99; tag >= 0; tag--) {
        for (int i = tag; i < messages; i += 100) {
            OK(MPI_Recv(&in, 1, MPI_INT, suite.prev, tag, suite.comm, MPI_STATUS_IGNORE));
            CHECK(in == i, "tag %d brought %d instead of %d", tag, in, i);
        }
    }
    OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
    free(requests);
    free(values);
}

// Messages that wait for a blocking receive, of sizes around what an implementation may keep in one
// place, into a buffer whose data begins before its address, and that has a gap.
static void blocking_receives_take_what_has_come(void)
{
    static const int sizes[] = {0, 1, 8, 100, 127, 128, 129, 300, 5000};
    MPI_Datatype shifted, gapped;
    int displacement = -16, block = 8;
    MPI_Request requests[COUNT_OF(sizes)];
    unsigned char out[COUNT_OF(sizes)][5000], in[3 * 5000];
    OK(MPI_Type_indexed(1, &block, &displacement, MPI_BYTE, &shifted));
    OK(MPI_Type_create_resized(shifted, displacement, block, &shifted));
    OK(MPI_Type_commit(&shifted));
    OK(MPI_Type_vector(2, 1, 3, MPI_BYTE, &gapped));
    OK(MPI_Type_commit(&gapped));
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            pattern_fill(out[i], (size_t) sizes[i], i);
            OK(MPI_Isend(out[i], sizes[i], MPI_BYTE, suite.next, (int) i, suite.comm,
                         &requests[i]));
        }
        OK(MPI_Barrier(suite.comm));
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            size_t bytes = (size_t) sizes[i];
            MPI_Status status;
            memset(in, UNTOUCHED, sizeof in);
            if (round == 0) {
                OK(MPI_Recv(in, 5000, MPI_BYTE, suite.prev, (int) i, suite.comm, &status));
            } else if (round == 1) {
                OK(MPI_Recv(in + 16, 625, shifted, suite.prev, (int) i, suite.comm, &status));
            } else {
                OK(MPI_Recv(in, 2500, gapped, suite.prev, (int) i, suite.comm, &status));
                for (size_t k = 0; k < bytes; k++) /* the type's extent is 4, its bytes 0 and 3 */
                    in[k] = in[k / 2 * 4 + k % 2 * 3];
            }
            CHECK_STATUS(status, suite.prev, (int) i, bytes);
            CHECK_PATTERN(in, bytes, i, "%zu bytes in round %d", bytes, round);
            CHECK(round == 2 || all_bytes_are(in + bytes, sizeof in - bytes, UNTOUCHED),
                  "%zu bytes in round %d: wrote behind", bytes, round);
        }
        OK(MPI_Waitall((int) COUNT_OF(sizes), requests, MPI_STATUSES_IGNORE));
    }
    OK(MPI_Type_free(&shifted));
    OK(MPI_Type_free(&gapped));
}

// The first to ask for any tag, or any source, asks when many messages of many tags wait: they come
// in the order in which they were sent; and so do those that come after.
static void a_first_wildcard_finds_what_waits_in_order(void)
{
    enum { MESSAGES = 300 };
    for (int any_source = 0; any_source < 2; any_source++) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(suite.comm, &comm));
        for (int half = 0; half < 2; half++) {
            int out[MESSAGES], in;
            MPI_Request requests[MESSAGES];
            for (int i = 0; i < MESSAGES; i++) {
                out[i] = i;
                OK(MPI_Isend(&out[i], 1, MPI_INT, suite.next, i * 37 % 101, comm, &requests[i]));
            }
            OK(MPI_Barrier(suite.comm));
            for (int i = 0; i < MESSAGES; i++) {
                MPI_Status status;
                OK(MPI_Recv(&in, 1, MPI_INT, any_source ? MPI_ANY_SOURCE : suite.prev, MPI_ANY_TAG,
                            comm, &status));
                CHECK(in == i && status.MPI_TAG == i * 37 % 101 && status.MPI_SOURCE == suite.prev,
                      "receive %d took message %d with tag %d of rank %d", i, in, status.MPI_TAG,
                      status.MPI_SOURCE);
            }
            OK(MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE));
        }
        OK(MPI_Comm_free(&comm));
    }
}

// If one of a matching pair is started and the partner enters MPI for something else, both
// complete.
static void a_send_completes_while_the_receiver_is_elsewhere_in_mpi(void)
{
    for (size_t i = 0; i < suite_size_count_below(4 << 20); i += 5) {
        size_t bytes = suite_sizes[i];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Request receive;
        pattern_fill(out, bytes, bytes);
        OK(MPI_Irecv(in, (int) bytes, MPI_BYTE, suite.prev, 1, suite.comm, &receive));
        MPI_Request send;
        OK(MPI_Issend(out, (int) bytes, MPI_BYTE, suite.next, 1, suite.comm, &send));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(suite.comm)); // the receive is never waited for until here
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        CHECK_PATTERN(in, bytes, bytes, "%zu bytes", bytes);
        free(out);
        free(in);
    }
}

// Messages that are not cut into pieces are not reckoned among the pieces that are under way: large
// ones that come after many of them find their lanes free.
static void large_messages_follow_many_middling_ones(void)
{
    enum { MIDDLING = 12000, MIDDLINGS = 600, LARGE = 3000000, LARGES = 3 };
    unsigned char *out = suite_alloc(LARGE), *in = suite_alloc(LARGE);
    for (int i = 0; i < MIDDLINGS + LARGES; i++) {
        int bytes = i < MIDDLINGS ? MIDDLING : LARGE;
        MPI_Request send;
        pattern_fill(out, (size_t) bytes, (uint64_t) i);
        OK(MPI_Isend(out, bytes, MPI_BYTE, suite.next, 1, suite.comm, &send));
        OK(MPI_Recv(in, bytes, MPI_BYTE, suite.prev, 1, suite.comm, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        CHECK_PATTERN(in, (size_t) bytes, (uint64_t) i, "message %d", i);
    }
    free(out);
    free(in);
}

// The receiver may be through with a large message before its sender, which is elsewhere, has read
// that it began. What the sender waits for in the end may come by a faster lane than that.
static void a_message_ends_while_its_sender_is_away(void)
{
    enum { BYTES = 4000000, ROUNDS = 3 };
    const struct timespec away = {0, 100000000};
    unsigned char *bytes = suite_alloc(BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        int word = round, key = 17 * round;
        if (suite.rank == 0) {
            MPI_Request send;
            pattern_fill(bytes, BYTES, (uint64_t) key);
            OK(MPI_Isend(bytes, BYTES, MPI_BYTE, 1, 1, suite.comm, &send));
            nanosleep(&away, NULL);
            OK(MPI_Recv(&word, 1, MPI_INT, 1, 2, suite.comm, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        } else if (suite.rank == 1) {
            OK(MPI_Recv(bytes, BYTES, MPI_BYTE, 0, 1, suite.comm, MPI_STATUS_IGNORE));
            CHECK_PATTERN(bytes, BYTES, (uint64_t) key, "round %d", round);
            OK(MPI_Send(&word, 1, MPI_INT, 0, 2, suite.comm));
        }
    }
    free(bytes);
}

// The receiver sits in a collective on another communicator while the sender's message arrives.
static void progress_is_made_inside_collectives(void)
{
    enum { BYTES = 3000000 };
    unsigned char *out = suite_alloc(BYTES), *in = suite_alloc(BYTES);
    MPI_Request receive;
    pattern_fill(out, BYTES, (uint64_t) suite.rank);
    OK(MPI_Irecv(in, BYTES, MPI_BYTE, suite.prev, 1, suite.comm, &receive));
    if (suite.rank % 2 == 1 || suite.size == 1) {
        MPI_Request send;
        OK(MPI_Isend(out, BYTES, MPI_BYTE, suite.next, 1, suite.comm, &send));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE)); // the next one is in the barrier, or here
        OK(MPI_Barrier(MPI_COMM_WORLD));
    } else {
        MPI_Request send;
        OK(MPI_Isend(out, BYTES, MPI_BYTE, suite.next, 1, suite.comm, &send));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    CHECK_PATTERN(in, BYTES, (uint64_t) suite.prev, "rank %d's message", suite.prev);
    free(out);
    free(in);
}

// Every rank's messages are received in the end although one sender floods.
static void a_flood_does_not_starve_the_others(void)
{
    int flood = suite.thorough ? 20000 : 2000, value = suite.rank;
    int mine = suite.rank == 1 ? flood : 10;
    if (suite.rank != 0) {
        for (int i = 0; i < mine; i++)
            OK(MPI_Send(&value, 1, MPI_INT, 0, 0, suite.comm));
        return;
    }
    int total = flood + 10 * (suite.size - 2), others = 0;
    for (int i = 0; i < total; i++) {
        MPI_Status status;
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, suite.comm, &status));
        CHECK(value == status.MPI_SOURCE, "value %d from %d", value, status.MPI_SOURCE);
        others += status.MPI_SOURCE != 1;
    }
    CHECK(others == 10 * (suite.size - 2), "%d messages of the others", others);
}

static void everybody_sends_to_everybody(void)
{
    static const size_t sizes[] = {0, 8, 3000, 20000, 150000};
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        size_t bytes = sizes[s], ranks = (size_t) suite.size;
        unsigned char *out = suite_alloc(bytes * ranks), *in = suite_alloc(bytes * ranks);
        MPI_Request *requests = suite_alloc(2 * ranks * sizeof *requests);
        for (int i = 0; i < suite.size; i++)
            OK(MPI_Irecv(in + (size_t) i * bytes, (int) bytes, MPI_BYTE, i, 2, suite.comm,
                         &requests[i]));
        for (int i = 0; i < suite.size; i++) {
            pattern_fill(out + (size_t) i * bytes, bytes, key_of(suite.rank, i, bytes, 0));
            OK(MPI_Isend(out + (size_t) i * bytes, (int) bytes, MPI_BYTE, i, 2, suite.comm,
                         &requests[suite.size + i]));
        }
        OK(MPI_Waitall(2 * suite.size, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < suite.size; i++)
            CHECK_PATTERN(in + (size_t) i * bytes, bytes, key_of(i, suite.rank, bytes, 0),
                          "from %d, %zu bytes", i, bytes);
        free(out);
        free(in);
        free(requests);
    }
}

static void a_send_buffer_may_be_read_by_several_sends(void)
{
    enum { BYTES = 100000, SENDS = 6 };
    unsigned char *out = suite_alloc(BYTES), *in = suite_alloc(BYTES);
    MPI_Request requests[SENDS];
    pattern_fill(out, BYTES, 77);
    for (int i = 0; i < SENDS; i++)
        OK(MPI_Isend(out, BYTES, MPI_BYTE, suite.next, i, suite.comm, &requests[i]));
    for (int i = SENDS - 1; i >= 0; i--) {
        OK(MPI_Recv(in, BYTES, MPI_BYTE, suite.prev, i, suite.comm, MPI_STATUS_IGNORE));
        CHECK_PATTERN(in, BYTES, 77, "send %d", i);
    }
    OK(MPI_Waitall(SENDS, requests, MPI_STATUSES_IGNORE));
    free(out);
    free(in);
}

// ---- messages to oneself ----

static void messages_to_oneself_arrive(void)
{
    for (size_t i = 0; i < suite_size_count_below(2 << 20); i++) {
        size_t bytes = suite_sizes[i];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Request request;
        MPI_Status status;
        pattern_fill(out, bytes, bytes);
        OK(MPI_Irecv(in, (int) bytes, MPI_BYTE, 0, 6, MPI_COMM_SELF, &request));
        OK(MPI_Ssend(out, (int) bytes, MPI_BYTE, 0, 6, MPI_COMM_SELF));
        OK(MPI_Wait(&request, &status));
        CHECK_STATUS(status, 0, 6, bytes);
        CHECK_PATTERN(in, bytes, bytes, "posted, %zu bytes", bytes);
        memset(in, 0, bytes);
        OK(MPI_Isend(out, (int) bytes, MPI_BYTE, suite.rank, 7, suite.comm, &request));
        OK(MPI_Recv(in, (int) bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm, &status));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_STATUS(status, suite.rank, 7, bytes);
        CHECK_PATTERN(in, bytes, bytes, "unexpected, %zu bytes", bytes);
        free(out);
        free(in);
    }
}

// ---- send-receive ----

static void sendrecv_exchanges(void)
{
    for (size_t i = 0; i < suite_size_count_below(4 << 20); i++) {
        size_t bytes = suite_sizes[i];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Status status;
        pattern_fill(out, bytes, (uint64_t) suite.rank);
        OK(MPI_Sendrecv(out, (int) bytes, MPI_BYTE, suite.next, 3, in, (int) bytes, MPI_BYTE,
                        suite.prev, 3, suite.comm, &status));
        CHECK_STATUS(status, suite.prev, 3, bytes);
        CHECK_PATTERN(in, bytes, (uint64_t) suite.prev, "%zu bytes", bytes);
        free(out);
        free(in);
    }
}

// Of the longest a part is sent at a time; a lane may take more than that at once.
static void the_longest_arrive_whole(void)
{
    static const size_t megabytes[] = {15, 16, 17, 20, 40};
    unsigned char *out = suite_alloc(40 << 20), *in = suite_alloc(40 << 20);
    for (size_t i = 0; i < COUNT_OF(megabytes); i++) {
        size_t bytes = megabytes[i] << 20;
        MPI_Status status;
        pattern_fill(out, bytes, i);
        memset(in, 0xA5, bytes);
        OK(MPI_Sendrecv(out, (int) bytes, MPI_BYTE, suite.next, 1, in, (int) bytes, MPI_BYTE,
                        suite.prev, 1, suite.comm, &status));
        CHECK_STATUS(status, suite.prev, 1, bytes);
        CHECK_PATTERN(in, bytes, i, "%zu MiB", megabytes[i]);
    }
    free(out);
    free(in);
}

static void sendrecv_replace_exchanges(void)
{
    for (size_t i = 0; i < suite_size_count_below(2 << 20); i++) {
        size_t bytes = suite_sizes[i];
        unsigned char *data = suite_alloc(bytes);
        MPI_Status status;
        pattern_fill(data, bytes, (uint64_t) suite.rank);
        OK(MPI_Sendrecv_replace(data, (int) bytes, MPI_BYTE, suite.next, 3, suite.prev, MPI_ANY_TAG,
                                suite.comm, &status));
        CHECK_STATUS(status, suite.prev, 3, bytes);
        CHECK_PATTERN(data, bytes, (uint64_t) suite.prev, "%zu bytes", bytes);
        free(data);
    }
}

static void sendrecv_matches_plain_sends_and_receives(void)
{
    int in = -1, out = suite.rank;
    MPI_Request request;
    if (suite.rank % 2 == 0) {
        OK(MPI_Sendrecv(&out, 1, MPI_INT, suite.next, 1, &in, 1, MPI_INT, suite.prev, 1, suite.comm,
                        MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Isend(&out, 1, MPI_INT, suite.next, 1, suite.comm, &request));
        OK(MPI_Recv(&in, 1, MPI_INT, suite.prev, 1, suite.comm, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    CHECK(in == suite.prev, "received %d", in);
}

#if SUITE_MPI_4
static void immediate_sendrecv_exchanges(void)
{
    for (size_t i = 0; i < suite_size_count_below(1 << 20); i += 2) {
        size_t bytes = suite_sizes[i];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Request requests[2];
        pattern_fill(out, bytes, (uint64_t) suite.rank);
        OK(MPI_Isendrecv(out, (int) bytes, MPI_BYTE, suite.next, 3, in, (int) bytes, MPI_BYTE,
                         suite.prev, 3, suite.comm, &requests[0]));
        OK(MPI_Isendrecv_replace(out, 0, MPI_BYTE, suite.next, 4, suite.prev, 4, suite.comm,
                                 &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_PATTERN(in, bytes, (uint64_t) suite.prev, "%zu bytes", bytes);
        OK(MPI_Isendrecv_replace(out, (int) bytes, MPI_BYTE, suite.next, 5, suite.prev, 5,
                                 suite.comm, &requests[0]));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        CHECK_PATTERN(out, bytes, (uint64_t) suite.prev, "replaced, %zu bytes", bytes);
        free(out);
        free(in);
    }
}
#endif

// ---- null processes ----

static void check_null_status(const MPI_Status *status, const char *call)
{
    int count = -1;
    OK(MPI_Get_count(status, MPI_INT, &count));
    CHECK(status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG && count == 0,
          "%s from MPI_PROC_NULL: source %d tag %d count %d", call, status->MPI_SOURCE,
          status->MPI_TAG, count);
}

static void null_process_completes_at_once(void)
{
    int data = 5, flag = 0;
    MPI_Status status;
    MPI_Request request;
    MPI_Message message;
    for (size_t m = 0; m < COUNT_OF(modes); m++) {
        OK(modes[m].blocking(&data, 1, MPI_INT, MPI_PROC_NULL, 0, suite.comm));
        OK(modes[m].immediate(&data, 1, MPI_INT, MPI_PROC_NULL, 0, suite.comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(modes[m].persistent(&data, 1, MPI_INT, MPI_PROC_NULL, 0, suite.comm, &request));
        for (int i = 0; i < 3; i++) {
            OK(MPI_Start(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        OK(MPI_Request_free(&request));
    }
    OK(MPI_Recv(&data, 1, MPI_INT, MPI_PROC_NULL, 3, suite.comm, &status));
    check_null_status(&status, "MPI_Recv");
    OK(MPI_Irecv(&data, 1, MPI_INT, MPI_PROC_NULL, 3, suite.comm, &request));
    OK(MPI_Wait(&request, &status));
    check_null_status(&status, "MPI_Irecv");
    OK(MPI_Recv_init(&data, 1, MPI_INT, MPI_PROC_NULL, 3, suite.comm, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, &status));
    check_null_status(&status, "MPI_Recv_init");
    OK(MPI_Request_free(&request));
    OK(MPI_Probe(MPI_PROC_NULL, 3, suite.comm, &status));
    check_null_status(&status, "MPI_Probe");
    OK(MPI_Iprobe(MPI_PROC_NULL, 3, suite.comm, &flag, &status));
    CHECK(flag, "MPI_Iprobe of MPI_PROC_NULL found nothing");
    check_null_status(&status, "MPI_Iprobe");
    OK(MPI_Mprobe(MPI_PROC_NULL, 3, suite.comm, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC, "MPI_Mprobe gave another message handle");
    check_null_status(&status, "MPI_Mprobe");
    OK(MPI_Mrecv(&data, 1, MPI_INT, &message, &status));
    check_null_status(&status, "MPI_Mrecv");
    CHECK(message == MPI_MESSAGE_NULL, "MPI_Mrecv left the message handle");
    OK(MPI_Improbe(MPI_PROC_NULL, 3, suite.comm, &flag, &message, &status));
    CHECK(flag && message == MPI_MESSAGE_NO_PROC, "MPI_Improbe of MPI_PROC_NULL: flag %d", flag);
    OK(MPI_Imrecv(&data, 1, MPI_INT, &message, &request));
    OK(MPI_Wait(&request, &status));
    check_null_status(&status, "MPI_Imrecv");
    OK(MPI_Sendrecv(&data, 1, MPI_INT, MPI_PROC_NULL, 0, &data, 1, MPI_INT, MPI_PROC_NULL, 0,
                    suite.comm, &status));
    check_null_status(&status, "MPI_Sendrecv");
    CHECK(data == 5, "a receive from MPI_PROC_NULL wrote %d", data);
}

static void a_line_with_null_ends_shifts(void)
{
    int left = suite.rank == 0 ? MPI_PROC_NULL : suite.rank - 1;
    int right = suite.rank == suite.size - 1 ? MPI_PROC_NULL : suite.rank + 1;
    int in = -7, out = suite.rank;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, right, 0, &in, 1, MPI_INT, left, 0, suite.comm,
                    MPI_STATUS_IGNORE));
    CHECK(in == (left == MPI_PROC_NULL ? -7 : left), "received %d", in);
}

static void null_buffers_of_no_bytes_are_welcome(void)
{
    MPI_Status status;
    OK(MPI_Sendrecv(NULL, 0, MPI_INT, suite.next, 0, NULL, 0, MPI_DOUBLE, suite.prev, 0, suite.comm,
                    &status));
    CHECK_STATUS(status, suite.prev, 0, 0);
    OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, suite.next, 0, NULL, 0, MPI_CHAR, MPI_ANY_SOURCE,
                    MPI_ANY_TAG, suite.comm, &status));
    CHECK_STATUS(status, suite.prev, 0, 0);
}

// Eager data sent before the peer has ever spoken, in both directions at once, to all ranks.
static void first_contact_in_both_directions_at_once(void)
{
    MPI_Comm fresh;
    OK(MPI_Comm_dup(suite.comm, &fresh));
    for (int step = 0; step < suite.size; step++) {
        int to = (suite.rank + step) % suite.size,
            from = (suite.rank + suite.size - step) % suite.size;
        int out = suite.rank * 1000 + step, in = -1;
        MPI_Request request;
        OK(MPI_Isend(&out, 1, MPI_INT, to, step, fresh, &request));
        OK(MPI_Recv(&in, 1, MPI_INT, from, step, fresh, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(in == from * 1000 + step, "from %d came %d", from, in);
    }
    OK(MPI_Comm_free(&fresh));
}

#define MODES     "Point-to-Point, Communication Modes"
#define SEMANTICS "Point-to-Point, Semantics of Point-to-Point Communication"

static const struct suite_case cases[] = {
    {"first_contact_in_both_directions_at_once", SEMANTICS,
     first_contact_in_both_directions_at_once, 1},
    {"standard_mode_delivers_every_size", MODES, standard_mode_delivers_every_size, 1},
    {"buffered_mode_delivers_every_size", MODES, buffered_mode_delivers_every_size, 1},
    {"synchronous_mode_delivers_every_size", MODES, synchronous_mode_delivers_every_size, 1},
    {"ready_mode_delivers_every_size", MODES, ready_mode_delivers_every_size, 1},
    {"blocking_sends_find_late_receives", MODES, blocking_sends_find_late_receives, 2},
    {"synchronous_send_waits_for_the_receive", MODES, synchronous_send_waits_for_the_receive, 1},
    {"buffered_send_is_local", MODES, buffered_send_is_local, 1},
    {"buffer_detach_waits_for_delivery", "Point-to-Point, Buffer Allocation and Usage",
     buffer_detach_waits_for_delivery, 1},
    {"buffered_send_without_room_is_an_error", "Point-to-Point, Buffer Allocation and Usage",
     buffered_send_without_room_is_an_error, 1},
#if SUITE_MPI_4_1
    {"communicator_and_session_buffers_serve", "Point-to-Point, Buffer Allocation and Usage",
     communicator_and_session_buffers_serve, 1},
    {"automatic_buffers_serve", "Point-to-Point, Buffer Allocation and Usage",
     automatic_buffers_serve, 1},
#endif
    {"the_tag_selects_the_message", "Point-to-Point, Message Envelope", the_tag_selects_the_message,
     1},
    {"the_largest_tag_works", "Point-to-Point, Message Envelope", the_largest_tag_works, 1},
    {"any_source_and_any_tag_report_what_came", "Point-to-Point, Return Status",
     any_source_and_any_tag_report_what_came, 2},
    {"any_source_with_a_tag_leaves_the_others", "Point-to-Point, Blocking Receive",
     any_source_with_a_tag_leaves_the_others, 1},
    {"any_tag_does_not_see_collective_traffic", "Point-to-Point, Blocking Receive",
     any_tag_does_not_see_collective_traffic, 1},
    {"a_shorter_message_leaves_the_rest_untouched", "Point-to-Point, Blocking Receive",
     a_shorter_message_leaves_the_rest_untouched, 1},
    {"get_count_and_get_elements_tell_partial_items", "Point-to-Point, Return Status",
     get_count_and_get_elements_tell_partial_items, 1},
    {"the_error_field_is_left_alone_by_single_completions", "Point-to-Point, Return Status",
     the_error_field_is_left_alone_by_single_completions, 1},
    {"messages_do_not_overtake", SEMANTICS, messages_do_not_overtake, 1},
    {"posted_receives_match_in_order", SEMANTICS, posted_receives_match_in_order, 1},
    {"wildcards_and_specific_receives_share_one_order", SEMANTICS,
     wildcards_and_specific_receives_share_one_order, 1},
    {"many_unexpected_messages_are_kept", SEMANTICS, many_unexpected_messages_are_kept, 1},
    {"blocking_receives_take_what_has_come", SEMANTICS, blocking_receives_take_what_has_come, 1},
    {"a_first_wildcard_finds_what_waits_in_order", SEMANTICS,
     a_first_wildcard_finds_what_waits_in_order, 1},
    {"a_send_completes_while_the_receiver_is_elsewhere_in_mpi", SEMANTICS,
     a_send_completes_while_the_receiver_is_elsewhere_in_mpi, 1},
    {"large_messages_follow_many_middling_ones", SEMANTICS,
     large_messages_follow_many_middling_ones, 1},
    {"a_message_ends_while_its_sender_is_away", SEMANTICS, a_message_ends_while_its_sender_is_away,
     2},
    {"progress_is_made_inside_collectives", SEMANTICS, progress_is_made_inside_collectives, 1},
    {"a_flood_does_not_starve_the_others", SEMANTICS, a_flood_does_not_starve_the_others, 2},
    {"everybody_sends_to_everybody", SEMANTICS, everybody_sends_to_everybody, 1},
    {"a_send_buffer_may_be_read_by_several_sends", "Point-to-Point, Communication Initiation",
     a_send_buffer_may_be_read_by_several_sends, 1},
    {"messages_to_oneself_arrive", SEMANTICS, messages_to_oneself_arrive, 1},
    {"sendrecv_exchanges", "Point-to-Point, Send-Receive", sendrecv_exchanges, 1},
    {"the_longest_arrive_whole", SEMANTICS, the_longest_arrive_whole, 1},
    {"sendrecv_replace_exchanges", "Point-to-Point, Send-Receive", sendrecv_replace_exchanges, 1},
    {"sendrecv_matches_plain_sends_and_receives", "Point-to-Point, Send-Receive",
     sendrecv_matches_plain_sends_and_receives, 1},
#if SUITE_MPI_4
    {"immediate_sendrecv_exchanges", "Point-to-Point, Send-Receive", immediate_sendrecv_exchanges,
     1},
#endif
    {"null_process_completes_at_once", "Point-to-Point, Null Processes",
     null_process_completes_at_once, 1},
    {"a_line_with_null_ends_shifts", "Point-to-Point, Null Processes", a_line_with_null_ends_shifts,
     1},
    {"null_buffers_of_no_bytes_are_welcome", "Point-to-Point, Message Data",
     null_buffers_of_no_bytes_are_welcome, 1},
};

const struct suite_chapter suite_point = {"point", cases, COUNT_OF(cases)};
