/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of messages: few are taken, each once, and only by the answer of the receiver itself; and
 * plans that follow them. */
#include "check.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "contact/peer_lanes.h"
#include "entry/calls.h"
#include "job_standin.h"
#include "lane/waiting.h"
#include "plan/learning.h"
#include "plan/peer_class.h"
#include "plan/costs.h"

#define TAG    5
#define WINDOW (1 << 24)
#define BYTES  ((size_t) 8192)

static const unsigned char bytes[BYTES];

static struct peer_class *class_now(void)
{
    return peer_class_now(job_peer(1));
}

/* Where a send ends when the message is there, none follows others unseen. */
static void messages_are_seen(bool are)
{
    uint32_t *can = &class_now()->lanes[class_now()->control].can;
    *can = are ? *can | MODEL_CAN_RING : *can & ~(uint32_t) MODEL_CAN_RING;
}

static void begin(int explain, int learn)
{
    parameters.explain = explain;
    parameters.learn = learn;
    standin_now_ns = 1000000000;
    job_begin(WINDOW, 0);
    job_has_room = true;
    standin_expects_failures = true;
    standin_failures = 0;
    multilane.bad_headers = 0;
    messages_are_seen(true);
}

static struct route *route_used(enum class_buffer buffer, size_t size)
{
    return class_route_at(class_now(), buffer, size);
}

static const struct learning_range *range_of(const struct route *route, size_t size)
{
    return learning_range_of(class_now(), (enum class_buffer) route->buffer,
                             plan_entry_key(route->entry), learned_bucket(size));
}

static unsigned taken(void)
{
    const struct learning_range *range = range_of(route_used(CLASS_CONTIGUOUS, 8), 8);
    return range ? range->taken : 0;
}

/* The handle by which the message asks for its time; false: it does not. */
static bool handle_of(const struct job_sent *sent, uint8_t flag, struct wire_handle *handle)
{
    struct wire_base base;
    memcpy(&base, sent->bytes, sizeof(base));
    if (!(base.flags & flag))
        return false;
    memcpy(handle, sent->bytes + sizeof(base), sizeof(*handle));
    return true;
}

static bool send_one(size_t size, struct wire_handle *handle)
{
    job_forget();
    ompi_request_t *request = job_send(bytes, size, 1, TAG);
    CHECK(request_is_complete(request), "a send waits for an answer");
    CHECK(job_free(request) == MPI_SUCCESS, "a send failed");
    return handle_of(&job_sent[0], WIRE_TIMED, handle);
}

static void answer(int rank, struct wire_handle handle, uint64_t ended_ns)
{
    const struct wire_time time = {.timer = handle, .ended_ns = ended_ns};
    job_control(rank, 0, WIRE_TIME, &time, sizeof(time), NULL, 0);
}

static void few_messages_are_timed(void)
{
    begin(2, 0);
    struct wire_handle handle = {0};
    unsigned asked = 0, next = 1;
    for (unsigned i = 1; i <= 2000; i++) {
        bool asks = send_one(8, &handle);
        CHECK(asks == (i == next), "message %u asks: %d", i, asks);
        if (i == next)
            next += i < 8 * 16 ? 8 : i / 16;
        asked += asks;
        standin_now_ns += 1000;
        if (asks)
            answer(1, handle, standin_now_ns - 1);
    }
    CHECK(taken() == asked && asked > 40 && asked < 80, "%u of %u", taken(), asked);
    CHECK(!multilane.bad_headers, "an answer is bad");
    job_end();
}

static double seen_s(const struct route *route, size_t size)
{
    struct plan_input input;
    struct cost cost;
    const struct learning_range *range = range_of(route, size);
    class_plan_input(class_now(), (enum class_buffer) route->buffer, &input);
    input.learned = NULL;
    return range && range->taken && plan_predict(&input, route->entry, size, &cost)
               ? (double) range->ratio[0] * cost_of(&cost, input.view, size)
               : 0;
}

static void on_a_node_the_time_is_that_of_one_way(void)
{
    begin(1, 0);
    class_now()->placement = PROFILE_NODE;
    struct wire_handle handle = {0}, other;
    uint64_t began_ns = standin_now_ns;
    CHECK(send_one(8, &handle), "the first does not ask");
    standin_now_ns += 50000; /* when the answer comes does not matter */
    answer(2, handle, began_ns + 3000);
    CHECK(!taken(), "another peer's answer counts");
    other = (struct wire_handle){handle.index + 1, handle.generation};
    answer(1, other, began_ns + 3000);
    other = (struct wire_handle){3, handle.generation};
    answer(1, other, began_ns + 3000);
    other = (struct wire_handle){UINT32_MAX, handle.generation};
    answer(1, other, began_ns + 3000);
    CHECK(!taken(), "a timer that does not wait is answered");
    answer(1, handle, began_ns + 3000);
    CHECK(taken() == 1 && fabs(seen_s(route_used(CLASS_CONTIGUOUS, 8), 8) / 3e-6 - 1) < 1e-3,
          "%u taken: %g s", taken(), seen_s(route_used(CLASS_CONTIGUOUS, 8), 8));
    answer(1, handle, began_ns + 3000);
    CHECK(taken() == 1, "an answer counts twice");
    /* Clocks that lie, or are another's. */
    for (int lie = 0; lie < 2; lie++) {
        while (!send_one(8, &handle))
            standin_now_ns += 100;
        began_ns = standin_now_ns;
        standin_now_ns += 1000;
        answer(1, handle, lie ? began_ns - 1 : UINT64_MAX);
        CHECK(taken() == 1, "a lie counts");
    }
    CHECK(!multilane.bad_headers, "an answer is bad");
    job_end();
}

/* The receiver was away: its time is not that of the way. */
static void a_message_that_lay_there_says_nothing(void)
{
    begin(1, 0);
    class_now()->placement = PROFILE_NODE;
    struct wire_time time = {.ended_ns = standin_now_ns + 3000, .may_have_lain = 1};
    CHECK(send_one(8, &time.timer), "the first does not ask");
    standin_now_ns += 50000;
    job_control(1, 0, WIRE_TIME, &time, sizeof(time), NULL, 0);
    CHECK(!taken(), "its time counts");
    time.may_have_lain = 0;
    job_control(1, 0, WIRE_TIME, &time, sizeof(time), NULL, 0);
    CHECK(!taken(), "it is answered twice");
    CHECK(!multilane.bad_headers, "an answer is bad");
    job_end();
}

static void from_another_host_the_answer_is_taken_off(void)
{
    begin(1, 0);
    class_now()->placement = PROFILE_HOST;
    struct wire_handle handle = {0};
    CHECK(send_one(8, &handle), "the first does not ask");
    standin_now_ns += 1000000;
    answer(1, handle, 7); /* by a clock of its own */
    /* One as short as its answer takes as long, and says what is taken off others. */
    double seconds = seen_s(route_used(CLASS_CONTIGUOUS, 8), 8);
    CHECK(fabs(seconds / 0.5e-3 - 1) < 1e-3, "%g s", seconds);
    CHECK(send_one(BYTES, &handle), "the first does not ask");
    standin_now_ns += 1200000;
    answer(1, handle, 7);
    seconds = seen_s(route_used(CLASS_CONTIGUOUS, BYTES), BYTES);
    CHECK(fabs(seconds / 0.7e-3 - 1) < 1e-3, "%g s", seconds);
    job_end();
}

/* As multilane-calibrate does, whatever the user has set. */
static void a_program_that_measures_has_each_timed(void)
{
    struct wire_handle handle = {0};
    begin(0, 0);
    class_now()->is_measured = true;
    for (int i = 0; i < 256; i++) {
        CHECK(send_one(BYTES, &handle), "message %d does not ask", i);
        standin_now_ns += 1000;
        answer(1, handle, standin_now_ns - 1);
    }
    const struct route *route = route_used(CLASS_CONTIGUOUS, BYTES);
    CHECK(range_of(route, BYTES)->taken == 256, "%u taken", range_of(route, BYTES)->taken);
    learning_forget(class_now());
    CHECK(!range_of(route, BYTES), "it is remembered");
    job_end();
}

static void without_report_and_learning_nothing_is_timed(void)
{
    struct wire_handle handle = {0};
    begin(0, 0);
    for (int i = 0; i < 256; i++)
        CHECK(!send_one(i % 2 ? 8 : BYTES, &handle), "message %d asks", i);
    job_end();
    begin(0, 1);
    for (int i = 0; i < 256; i++)
        CHECK(!send_one(8, &handle), "short message %d asks", i);
    job_end();
}

static void without_answers_others_are_timed(void)
{
    struct wire_handle handle = {0};
    begin(2, 0);
    for (int i = 0; i < 128 * 80; i++)
        (void) send_one(8, &handle);
    while (!send_one(8, &handle))
        continue;
    answer(1, handle, standin_now_ns);
    standin_now_ns += 100;
    CHECK(!multilane.bad_headers, "the last one's answer is bad");
    job_end();
}

static void a_synchronous_send_goes_by_its_own_plan(void)
{
    ompi_request_t *request;
    begin(0, 1);
    int rc = module_isend(bytes, 8, &ompi_mpi_byte.dt, 1, TAG, MCA_PML_BASE_SEND_SYNCHRONOUS,
                          &job_ompi_comm, &request);
    struct wire_handle handle = {0};
    CHECK(rc == OMPI_SUCCESS && handle_of(&job_sent[job_sent_count - 1], WIRE_SYNCHRONOUS, &handle),
          "no answer");
    CHECK(!request_is_complete(request), "it does not wait");
    const struct wire_ack ack = {.sender = handle};
    job_control(1, 0, WIRE_ACK, &ack, sizeof(ack), NULL, 0);
    CHECK(request_is_complete(request) && job_free(request) == MPI_SUCCESS, "it has not ended");
    CHECK(route_used(CLASS_SYNC, 8)->messages == 1 &&
              route_used(CLASS_CONTIGUOUS, 8)->messages == 0,
          "by another plan");
    job_end();
}

/* --- streams ---------------------------------------------------------------------------------- */

/* A network has taken them, and the peer has said nothing since: they are on their way still. */
static void what_follows_unseen_is_a_stream(void)
{
    begin(2, 0);
    messages_are_seen(false);
    struct wire_handle handle = {0};
    const struct route *single = route_used(CLASS_CONTIGUOUS, BYTES);
    const struct route *stream = route_used(CLASS_STREAM, BYTES);
    (void) send_one(BYTES, &handle);
    CHECK(single->messages == 1 && !stream->messages, "the first message follows none");
    (void) send_one(BYTES, &handle);
    CHECK(single->messages == 1 && stream->messages == 1, "the second one follows the first");
    standin_now_ns += 1000000000;
    (void) send_one(BYTES, &handle);
    (void) send_one(BYTES, &handle);
    CHECK(single->messages == 1 && stream->messages == 3, "a second later the next window begins");
    for (int i = 1; i <= 2; i++) {
        peer_sequence_came(job_peer(1)); /* an answer */
        (void) send_one(BYTES, &handle);
    }
    CHECK(single->messages == 2 && stream->messages == 4, "the second after an answer is single");
    messages_are_seen(true);
    (void) send_one(BYTES, &handle);
    CHECK(single->messages == 3, "what lies in a ring has arrived");
    job_end();
}

/* Windows with pauses between them: all but the first message go by the plan for streams, and what
 * is timed is a whole window, so no pause. */
static void a_window_goes_one_way(int length)
{
    begin(2, 0);
    class_now()->placement = PROFILE_NODE;
    struct wire_handle handle = {0}, last = {0};
    uint64_t began_ns = 0;
    int asked = 0;
    for (int i = 0; i < 40 * length; i++) {
        standin_now_ns += 10;
        job_peer(1)->under_way = i % length > 0;
        began_ns = i % length == 0 ? standin_now_ns : began_ns;
        if (!send_one(BYTES, &handle) || i == 0)
            continue;
        CHECK(i % length == length - 1, "message %d of windows of %d asks", i, length);
        last = handle;
        asked++;
        standin_now_ns += 100000;
        answer(1, last, began_ns + 700 * (uint64_t) length);
    }
    job_peer(1)->under_way = 0;
    CHECK(asked > 0, "windows of %d are timed", length);
    CHECK(route_used(CLASS_CONTIGUOUS, BYTES)->messages == 1 &&
              route_used(CLASS_STREAM, BYTES)->messages == 40u * (unsigned) length - 1,
          "only the first one of all is single");
    double seconds = seen_s(route_used(CLASS_STREAM, BYTES), BYTES);
    CHECK(fabs(seconds / 700e-9 - 1) < 1e-3, "%g s a message of windows of %d", seconds, length);
    job_peer(1)->under_way = 1;
    for (int i = asked = 0; i < 200; i++)
        asked += send_one(BYTES, &handle);
    job_peer(1)->under_way = 0;
    CHECK(asked > 0, "a window that does not end is timed in parts");
    job_end();
}

static void in_a_stream_nine_messages_share_their_time(void)
{
    begin(2, 0);
    class_now()->placement = PROFILE_NODE;
    struct wire_handle handle = {0}, last = {0};
    uint64_t began_ns = standin_now_ns;
    unsigned asked = 0;
    job_peer(1)->under_way = 1; /* a large message */
    for (int i = 1; i <= 20; i++) {
        standin_now_ns += 10;
        if (!send_one(BYTES, &handle))
            continue;
        asked++;
        CHECK(i == 9, "message %d of a stream asks", i);
        last = handle;
    }
    CHECK(asked == 1, "%u of 20 ask", asked);
    standin_now_ns += 100000;
    answer(1, last, began_ns + 10 + 10 * 700); /* nine, and the one before them */
    double seconds = seen_s(route_used(CLASS_STREAM, BYTES), BYTES);
    CHECK(fabs(seconds / 700e-9 - 1) < 1e-3, "%g s a message", seconds);
    job_peer(1)->under_way = 0;
    job_forget();
    (void) send_one(BYTES, &handle);
    (void) send_one(BYTES, &handle);
    CHECK(route_used(CLASS_CONTIGUOUS, BYTES)->messages == 1 &&
              route_used(CLASS_STREAM, BYTES)->messages == 21,
          "alone it goes by the other plan");
    job_end();
}

/* --- plans ------------------------------------------------------------------------------------ */

static double equation_s(const struct route *route, size_t size)
{
    struct plan_input input;
    struct cost cost;
    class_plan_input(class_now(), (enum class_buffer) route->buffer, &input);
    input.learned = NULL;
    return plan_predict(&input, route->entry, size, &cost) ? cost_of(&cost, input.view, size) : 0;
}

/* So many messages of the route took that many times what is expected. */
static void took(const struct route *route, size_t size, double factor, int messages)
{
    for (int i = 0; i < messages; i++)
        learning_add(class_now(), route, size, factor * equation_s(route, size));
}

static void plan_now(void)
{
    multilane_lock();
    learning_plan(class_now(), CLASS_CONTIGUOUS);
    multilane_unlock();
}

/* A way that is tried beside the one in use, for 1 MiB. */
static struct route *other_way(struct route *used)
{
    struct route *other = used;
    took(used, 1 << 20, 1, LEARNING_TIMES);
    for (int i = 0; i < 10000 && other == used; i++)
        other = learning_route(class_now(), used, 1 << 20, 100, 1);
    CHECK(other != used, "no other way is tried");
    return other;
}

static void a_plan_changes_where_another_way_is_faster(void)
{
    begin(0, 1);
    struct route *used = route_used(CLASS_CONTIGUOUS, 1 << 20);
    struct route *other = other_way(used);
    struct learned_key key = plan_entry_key(other->entry), before = plan_entry_key(used->entry);
    double same = equation_s(used, 1 << 20) / equation_s(other, 1 << 20);
    used->messages = 10;
    took(other, 1 << 20, same / 2, LEARNING_LEAST - 1);
    plan_now();
    CHECK(learned_key_equals(plan_entry_key(route_used(CLASS_CONTIGUOUS, 1 << 20)->entry), before),
          "after too few messages");
    took(other, 1 << 20, same / 2, 1);
    CHECK(learning_is_due(class_now(), CLASS_CONTIGUOUS) || standin_now_ns, "there is no news");
    plan_now();
    struct route *now = route_used(CLASS_CONTIGUOUS, 1 << 20);
    CHECK(learned_key_equals(plan_entry_key(now->entry), key), "%s is still used",
          now->protocol->name);
    CHECK(learned_key_equals(plan_entry_key(route_used(CLASS_CONTIGUOUS, 1 << 19)->entry), before),
          "so is 512 KiB, which was not tried");
    CHECK(class_now()->move_count == 1 && class_now()->moves->bucket == 20 &&
              class_now()->moves->to_messages == LEARNING_LEAST,
          "%u moves", class_now()->move_count);
    CHECK(route_used(CLASS_CONTIGUOUS, 1 << 19)->messages == 10,
          "the messages are counted no more");
    /* The old route is still good for those that began with it. */
    CHECK(used->protocol && used->lane_count, "it is gone");
    job_end();
}

/* The first size, from 8 KiB on, that the plan sends another way than the largest one of its range.
 */
static size_t size_before_border(void)
{
    for (size_t end = 16384; end <= (size_t) 1 << 30; end *= 2)
        for (size_t size = end / 2 + 1; size < end; size += end / 64) {
            struct route *route = route_used(CLASS_CONTIGUOUS, size);
            if (!learned_key_equals(plan_entry_key(route->entry),
                                    plan_entry_key(route_used(CLASS_CONTIGUOUS, end)->entry)))
                return size;
        }
    CHECK(false, "the plan has no border inside a range");
    return 16384;
}

/* A program sends one size, and the plan changes between that and the end of its range. */
static void sizes_before_a_border_teach(void)
{
    begin(0, 1);
    size_t size = size_before_border();
    struct route *used = route_used(CLASS_CONTIGUOUS, size), *other = used;
    took(used, size, 1, LEARNING_TIMES);
    for (int i = 0; i < 10000 && other == used; i++)
        other = learning_route(class_now(), used, size, 100, 1);
    CHECK(other != used, "%zu bytes: no other way is tried", size);
    double same = equation_s(used, size) / equation_s(other, size);
    took(other, size, same / 2, LEARNING_LEAST);
    plan_now();
    struct route *now = route_used(CLASS_CONTIGUOUS, size);
    CHECK(learned_key_equals(plan_entry_key(now->entry), plan_entry_key(other->entry)),
          "%zu bytes: %s is still used", size, now->protocol->name);
    CHECK(learning_is_promised(class_now(), CLASS_CONTIGUOUS, learned_bucket(size)), "no promise");
    took(now, size, same / 2, LEARNING_LEAST);
    CHECK(!learning_is_promised(class_now(), CLASS_CONTIGUOUS, learned_bucket(size)),
          "the promise is not kept by messages of %zu bytes", size);
    job_end();
}

/* Sizes on both sides of a border: a way that is in use for one of them and unknown is not pushed
 * out by what is known of the other. */
static void a_border_stays_where_only_one_side_is_known(void)
{
    begin(0, 1);
    size_t size = size_before_border(), end = learned_bucket_end(learned_bucket(size));
    struct route *below = route_used(CLASS_CONTIGUOUS, size);
    struct learned_key above = plan_entry_key(route_used(CLASS_CONTIGUOUS, end)->entry);
    took(below, size, 1, LEARNING_TIMES);
    took(route_used(CLASS_CONTIGUOUS, 4 * end), 4 * end, 3, LEARNING_TIMES);
    plan_now();
    CHECK(learned_key_equals(plan_entry_key(route_used(CLASS_CONTIGUOUS, end)->entry), above),
          "%zu bytes go by %s", end, route_used(CLASS_CONTIGUOUS, end)->protocol->name);
    /* And after so many of them they stand for the range. */
    took(route_used(CLASS_CONTIGUOUS, end), end, 1, LEARNING_TIMES + LEARNING_LEAST);
    CHECK(learning_factor(class_now(), CLASS_CONTIGUOUS, above, learned_bucket(end)) > 0,
          "%zu bytes teach nothing", end);
    job_end();
}

/* A lane that was idle carries a few messages faster than many. */
static void a_promise_that_is_not_kept_is_taken_back(void)
{
    begin(0, 1);
    struct route *used = route_used(CLASS_CONTIGUOUS, 1 << 20);
    struct learned_key before = plan_entry_key(used->entry);
    struct route *other = other_way(used);
    double same = equation_s(used, 1 << 20) / equation_s(other, 1 << 20);
    took(other, 1 << 20, same / 2, LEARNING_LEAST);
    plan_now();
    struct route *now = route_used(CLASS_CONTIGUOUS, 1 << 20);
    CHECK(!learned_key_equals(plan_entry_key(now->entry), before), "it stays");
    took(now, 1 << 20, 2 * same, LEARNING_LEAST - 1);
    plan_now();
    CHECK(route_used(CLASS_CONTIGUOUS, 1 << 20) == now, "after too few messages");
    took(now, 1 << 20, 2 * same, 1);
    plan_now();
    CHECK(learned_key_equals(plan_entry_key(route_used(CLASS_CONTIGUOUS, 1 << 20)->entry), before),
          "it is not taken back");
    CHECK(class_now()->move_count == 2, "%u moves", class_now()->move_count);
    job_end();
}

/* A way whose messages all take several times as long, as where a virtual machine's processors were
 * moved apart: the others count as what they took, and need no trials. */
static void a_machine_that_changes_is_followed(void)
{
    begin(0, 1);
    struct route *used = route_used(CLASS_CONTIGUOUS, 1 << 20);
    struct route *other = other_way(used);
    struct learned_key key = plan_entry_key(other->entry), before = plan_entry_key(used->entry);
    double same = equation_s(used, 1 << 20) / equation_s(other, 1 << 20);
    took(other, 1 << 20, 2 * same, LEARNING_LEAST); /* twice as slow */
    plan_now();
    CHECK(route_used(CLASS_CONTIGUOUS, 1 << 20) == used, "another way is used");
    learning_begin();
    standin_now_ns += 100000000; /* the job is no longer new */
    took(used, 1 << 20, 8, LEARNING_LEAST - 1);
    plan_now();
    CHECK(route_used(CLASS_CONTIGUOUS, 1 << 20) == used, "after too few messages");
    took(used, 1 << 20, 8, 1);
    plan_now();
    struct route *now = route_used(CLASS_CONTIGUOUS, 1 << 20);
    CHECK(learned_key_equals(plan_entry_key(now->entry), key), "%s stays", now->protocol->name);
    CHECK(learning_is_promised(class_now(), CLASS_CONTIGUOUS, 20), "each message is timed");
    /* All have become as slow. */
    took(now, 1 << 20, 16 * same, LEARNING_LEAST);
    CHECK(!learning_is_promised(class_now(), CLASS_CONTIGUOUS, 20), "all messages are timed");
    plan_now();
    CHECK(learned_key_equals(plan_entry_key(route_used(CLASS_CONTIGUOUS, 1 << 20)->entry), before),
          "it is not taken back");
    job_end();
}

/* Adapters behind one narrow bus: together they carry a third of what one carries alone, which no
 * attribute says. */
static void lanes_that_hinder_each_other_are_not_used_together(void)
{
    unsigned messages = 0;
    begin(0, 1);
    CHECK(route_used(CLASS_CONTIGUOUS, 1 << 20)->lane_count == JOB_LANES, "one carries 1 MiB");
    while (messages < 5000 && route_used(CLASS_CONTIGUOUS, 1 << 20)->lane_count > 1) {
        struct route *used = route_used(CLASS_CONTIGUOUS, 1 << 20);
        struct route *chosen = learning_route(class_now(), used, 1 << 20, 8, 1);
        took(chosen, 1 << 20, chosen->lane_count > 1 ? 3.0 * JOB_LANES : 1, 1);
        messages += 8;
        if (learning_is_due(class_now(), CLASS_CONTIGUOUS))
            plan_now();
    }
    CHECK(messages < 500, "they are, after %u messages", messages);
    job_end();
}

static unsigned plans_before(enum class_buffer buffer)
{
    unsigned count = 0;
    for (const struct planned *planned = class_planned(class_now(), buffer)->before; planned;
         planned = planned->before)
        count++;
    return count;
}

/* Nor for sends that wait for their match, which are not timed themselves. */
static void a_small_gain_changes_nothing(void)
{
    begin(0, 1);
    struct route *used = route_used(CLASS_CONTIGUOUS, 1 << 20), *other = other_way(used);
    double same = equation_s(used, 1 << 20) / equation_s(other, 1 << 20);
    for (int i = 0; i < 20; i++) {
        took(other, 1 << 20, (i % 2 ? 1.09 : 0.97) * same, LEARNING_TIMES);
        plan_now();
    }
    CHECK(class_now()->move_count == 0, "%u moves for 3 %%", class_now()->move_count);
    CHECK(plans_before(CLASS_SYNC) == 0, "%u plans of synchronous sends", plans_before(CLASS_SYNC));
    job_end();
}

static void trials_cost_a_bounded_part(void)
{
    begin(0, 1);
    struct route *used = route_used(CLASS_CONTIGUOUS, 1 << 20);
    double spent_s = 0, extra_s = 0, alone_s = equation_s(used, 1 << 20);
    took(used, 1 << 20, 1, LEARNING_TIMES);
    for (int i = 0; i < 20000; i++) {
        struct route *chosen = learning_route(class_now(), used, 1 << 20, 10, 1);
        double tried_s = equation_s(chosen, 1 << 20);
        spent_s += 10 * alone_s;
        if (chosen == used)
            continue;
        extra_s += tried_s > alone_s ? tried_s - alone_s : 0;
        took(chosen, 1 << 20, 1, 1);
    }
    CHECK(extra_s <= 0.0051 * spent_s, "%g of %g s", extra_s, spent_s);
    job_end();
}

/* 100 messages; how many ask for their time. */
static unsigned asking(size_t size)
{
    struct wire_handle handle;
    unsigned asked = 0;
    for (int i = 0; i < 100; i++)
        asked += send_one(size, &handle);
    return asked;
}

/* Where processes share their processors a message between them takes what others compute. */
static void a_crowded_node_teaches_nothing(void)
{
    begin(0, 1);
    struct route *used = route_used(CLASS_CONTIGUOUS, 1 << 20), *other = other_way(used);
    double same = equation_s(used, 1 << 20) / equation_s(other, 1 << 20);
    took(used, 1 << 20, 1, LEARNING_LEAST);
    took(other, 1 << 20, same / 2, LEARNING_LEAST);
    class_now()->placement = PROFILE_NODE;
    CHECK(learning_is_due(class_now(), CLASS_CONTIGUOUS), "with a processor each nothing is due");
    atomic_store(&waiting.shares, true);
    CHECK(!learning_is_due(class_now(), CLASS_CONTIGUOUS), "a plan is");
    CHECK(asking(BYTES) == 0, "messages within the node are timed");
    class_now()->placement = PROFILE_HOST;
    CHECK(asking(BYTES) > 0, "those between nodes are not");
    atomic_store(&waiting.shares, false);
    job_end();
}

/* The peer gets another class, as where the kernel has measured its round trips. */
static void class_changes(void)
{
    const struct peer_class *before = class_now();
    struct peer *peer = job_peer(1);
    for (int i = 0; i < JOB_LANES; i++)
        peer->lanes[i].round_trip_s = 64e-6f;
    atomic_fetch_add(&peer->device_changes, 1);
    peer_follow_devices(peer);
    CHECK(class_now() != before, "the class is the same");
}

static void a_peer_keeps_what_was_learned(void)
{
    begin(0, 1);
    struct route *used = route_used(CLASS_CONTIGUOUS, 1 << 20), *other = other_way(used);
    struct learned_key key = plan_entry_key(other->entry);
    double same = equation_s(used, 1 << 20) / equation_s(other, 1 << 20);
    took(used, 1 << 20, 1, LEARNING_LEAST);
    took(other, 1 << 20, same / 2, LEARNING_LEAST);
    plan_now();
    CHECK(learned_key_equals(plan_entry_key(route_used(CLASS_CONTIGUOUS, 1 << 20)->entry), key),
          "it is not used");
    class_changes();
    CHECK(learned_key_equals(plan_entry_key(route_used(CLASS_CONTIGUOUS, 1 << 20)->entry), key),
          "it is forgotten with the class");
    CHECK(class_now()->move_count == 0, "which is no move");
    job_end();
}

/* What one job has learned the next one knows from its first message on. */
static void the_next_job_begins_there(void)
{
    char folder[64];
    snprintf(folder, sizeof(folder), "/tmp/multilane-timer-%d", (int) getpid());
    setenv("XDG_CACHE_HOME", folder, 1);
    parameters.profile = "auto";
    struct learned_key key = {0};
    for (int job = 0; job < 3; job++) {
        parameters.profile = "auto";
        parameters.learn = 1;
        used_history_load();
        begin(0, 1);
        struct route *used = route_used(CLASS_CONTIGUOUS, 1 << 20);
        if (job == 0) {
            struct route *other = other_way(used);
            double same = equation_s(used, 1 << 20) / equation_s(other, 1 << 20);
            key = plan_entry_key(other->entry);
            CHECK(!learned_key_equals(plan_entry_key(used->entry), key), "it is in use already");
            took(used, 1 << 20, 1, LEARNING_LEAST);
            took(other, 1 << 20, 3 * same, LEARNING_LEAST);
            class_changes();
            took(used, 1 << 20, 1, LEARNING_LEAST);
            took(other, 1 << 20, same / 2, LEARNING_TIMES); /* the last word counts */
        } else if (job == 1) {
            /* A slow job, which times the way in use alone. */
            took(used, 1 << 20, 8, LEARNING_TIMES);
        }
        if (job > 0) {
            CHECK(learned_key_equals(plan_entry_key(used->entry), key), "%s is used again",
                  used->protocol->name);
            CHECK(class_now()->move_count == 0, "which is no move");
            CHECK(strncmp(used_history_story(), "0 starts and 2 times of earlier jobs: ", 38) == 0,
                  "it says: %s", used_history_story());
        }
        job_end();
    }
    check_folder_remove(folder);
}

/* On processors that are near to each other another way may be the best one than an earlier job has
 * seen on others: one trial shows it, and a few more are free. */
static void what_an_earlier_job_saw_is_tried_once(void)
{
    const size_t size = 1 << 20;
    char folder[64];
    snprintf(folder, sizeof(folder), "/tmp/multilane-timer-%d", (int) getpid());
    setenv("XDG_CACHE_HOME", folder, 1);
    for (int job = 0; job < 2; job++) {
        parameters.profile = "auto";
        parameters.learn = 1;
        used_history_load();
        begin(0, 1);
        static struct learned_key key;
        struct route *used = route_used(CLASS_CONTIGUOUS, size);
        if (job == 0) {
            struct route *other = other_way(used);
            key = plan_entry_key(other->entry);
            took(other, size, 2 * equation_s(used, size) / equation_s(other, size), LEARNING_TIMES);
        }
        for (int i = 0; job == 1 && i < 150; i++) {
            struct route *planned = route_used(CLASS_CONTIGUOUS, size);
            struct route *route = learning_route(class_now(), planned, size, 8, 1);
            bool is_other = learned_key_equals(plan_entry_key(route->entry), key);
            double seconds = (is_other ? 0.3 : 3) * equation_s(used, size);
            learning_add(class_now(), route, size, seconds);
            plan_now();
        }
        if (job == 1)
            CHECK(
                learned_key_equals(plan_entry_key(route_used(CLASS_CONTIGUOUS, size)->entry), key),
                "the other way is not found again");
        job_end();
    }
    check_folder_remove(folder);
}

int main(void)
{
    a_synchronous_send_goes_by_its_own_plan();
    few_messages_are_timed();
    on_a_node_the_time_is_that_of_one_way();
    a_message_that_lay_there_says_nothing();
    from_another_host_the_answer_is_taken_off();
    a_program_that_measures_has_each_timed();
    without_report_and_learning_nothing_is_timed();
    without_answers_others_are_timed();
    what_follows_unseen_is_a_stream();
    a_window_goes_one_way(2);
    a_window_goes_one_way(5);
    a_window_goes_one_way(9);
    in_a_stream_nine_messages_share_their_time();
    a_plan_changes_where_another_way_is_faster();
    a_promise_that_is_not_kept_is_taken_back();
    sizes_before_a_border_teach();
    a_border_stays_where_only_one_side_is_known();
    a_machine_that_changes_is_followed();
    lanes_that_hinder_each_other_are_not_used_together();
    a_small_gain_changes_nothing();
    trials_cost_a_bounded_part();
    a_crowded_node_teaches_nothing();
    a_peer_keeps_what_was_learned();
    the_next_job_begins_there();
    what_an_earlier_job_saw_is_tried_once();
    return check_end();
}
