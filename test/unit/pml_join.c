/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives over two lanes, in whatever order: each receive gets its message, whole and in MPI's
 * order, and what makes no sense is refused and harms nothing. */
#include "check.h"

#include <string.h>

#include "common/compat/btl.h"
#include "entry/calls.h"
#include "job_standin.h"
#include "join/posting.h"

#define TAG 5

static void begin(void)
{
    job_begin(1 << 20, 0);
    standin_expects_failures = true;
    multilane.bad_headers = 0;
    multilane.early_messages = 0;
    standin_failures = 0;
}

/* --- whole messages -----------------------------------------------------------------------------
 */

#define MESSAGES 5

/* `order` is the permutation of that number; `posted` receives wait when the messages come. */
static void deliver_in_order(unsigned order, int posted)
{
    int left[MESSAGES], got[MESSAGES];
    struct recv_request *requests[MESSAGES];
    begin();
    for (int i = 0; i < MESSAGES; i++) {
        left[i] = i;
        got[i] = -1;
        if (i < posted)
            requests[i] = job_receive(&got[i], sizeof(got[i]), 1, TAG);
    }
    for (int i = 0; i < MESSAGES; i++) {
        int at = (int) order % (MESSAGES - i), next = left[at];
        order /= (unsigned) (MESSAGES - i);
        memmove(&left[at], &left[at + 1], (size_t) (MESSAGES - at - 1) * sizeof(left[0]));
        job_eager(1, next % JOB_LANES, (uint32_t) next, TAG, &next, sizeof(next));
        job_eager(1, (next + 1) % JOB_LANES, (uint32_t) next, TAG, &next, sizeof(next)); /* again */
    }
    for (int i = 0; i < MESSAGES; i++) {
        if (i >= posted)
            requests[i] = job_receive(&got[i], sizeof(got[i]), 1, TAG);
        CHECK(job_is_complete(requests[i]) && got[i] == i, "receive %d got message %d", i, got[i]);
        job_free(job_ompi(requests[i]));
    }
    CHECK(job_comm()->unexpected.count == 0 && !job_peer(1)->early, "something is left");
    CHECK(multilane.bad_headers == 0, "a duplicate is an error");
    CHECK(job_kept() == 0, "%zu messages are kept", job_kept());
    job_end();
}

static void messages_that_overtake_each_other_are_received_in_order(void)
{
    for (unsigned order = 0; order < 120; order++)
        for (int posted = 0; posted <= MESSAGES; posted++)
            deliver_in_order(order, posted);
}

static void a_peer_does_not_wait_for_another_ones_messages(void)
{
    int got = 0;
    const int one = 1, two = 2;
    begin();
    job_eager(1, 0, 1, TAG, &one, sizeof(one)); /* its number 0 is missing */
    struct recv_request *request = job_receive(&got, sizeof(got), OMPI_ANY_SOURCE, TAG);
    CHECK(!job_is_complete(request), "it overtakes");
    job_eager(2, 0, 0, TAG, &two, sizeof(two));
    CHECK(job_is_complete(request) && got == 2, "got %d", got);
    job_free(job_ompi(request));
    CHECK(multilane.early_messages == 1, "%llu are early",
          (unsigned long long) multilane.early_messages);
    job_end();
}

/* Numbers wrap; what is far ahead, or was here, is none of them. */
static void numbers_wrap(void)
{
    int got[4] = {-1, -1, -1, -1};
    struct recv_request *requests[4];
    begin();
    job_peer(1)->next_receive_sequence = UINT32_MAX - 1;
    for (int i = 0; i < 4; i++)
        requests[i] = job_receive(&got[i], sizeof(got[i]), 1, TAG);
    for (int i = 3; i >= 0; i--)
        job_eager(1, 0, UINT32_MAX - 1 + (uint32_t) i, TAG, &i, sizeof(i));
    for (int i = 0; i < 4; i++) {
        CHECK(job_is_complete(requests[i]) && got[i] == i, "receive %d got message %d", i, got[i]);
        job_free(job_ompi(requests[i]));
    }
    job_eager(1, 0, UINT32_MAX, TAG, got, sizeof(got[0]));
    CHECK(multilane.bad_headers == 0 && !job_peer(1)->early, "a duplicate");
    job_eager(1, 0, 2 + EARLY_MAX, TAG, got, sizeof(got[0]));
    CHECK(multilane.bad_headers == 0 && job_peer(1)->early, "as far ahead as can be");
    job_eager(1, 0, 2 + EARLY_MAX + 1, TAG, got, sizeof(got[0]));
    CHECK(multilane.bad_headers == 1 && standin_failures == 1, "further ahead than can be");
    job_end();
}

static void a_new_communicator_takes_what_came_before_it(void)
{
    int got = -1;
    begin();
    module_del_comm(&job_ompi_comm);
    for (int i = 0; i < 3; i++)
        job_eager_on(0, 1, i % JOB_LANES, (uint32_t) (i == 2 ? 2 : 1 - i), TAG, &i, sizeof(i));
    CHECK(opal_list_get_size(&multilane.orphans) == 3, "%zu wait",
          opal_list_get_size(&multilane.orphans));
    module_add_comm(&job_ompi_comm);
    static const int wanted[] = {1, 0, 2}; /* by their numbers */
    for (int i = 0; i < 3; i++) {
        struct recv_request *request = job_receive(&got, sizeof(got), OMPI_ANY_SOURCE, TAG);
        CHECK(job_is_complete(request) && got == wanted[i], "receive %d got %d", i, got);
        job_free(job_ompi(request));
    }
    job_end();
}

/* --- messages in parts --------------------------------------------------------------------------
 */

#define SIZE   1000
#define PART   100
#define PARTS  (SIZE / PART)
#define CANARY 0x5a

static unsigned char whole[SIZE], buffer[SIZE + 1];

/* The receive is posted before part `posted`. */
static void assemble(uint64_t seed, int posted)
{
    bool here[PARTS] = {false};
    uint64_t chance = seed;
    int missing = PARTS, parts = 0;
    uint32_t sequence =
        (uint32_t) chance_below(&chance, 2); /* 1: early, until the other is there */
    struct recv_request *request = NULL, *other = job_receive(NULL, 0, 1, TAG + 1);
    memset(buffer, CANARY, sizeof(buffer));
    job_peer(1)->next_receive_sequence = 0;
    while (missing || !request) {
        if (!request && (parts == posted || !missing)) {
            request = job_receive(buffer, sizeof(buffer), 1, TAG);
            CHECK(job_is_complete(request) == (!missing && sequence == 0), "%d are missing",
                  missing);
        }
        int part = (int) chance_below(&chance, PARTS);
        if (missing)
            job_part(1, part % JOB_LANES, sequence, TAG, whole, SIZE, (size_t) part * PART, PART);
        missing -= !here[part];
        here[part] = true;
        parts++;
        if (request)
            CHECK(job_is_complete(request) == (!missing && sequence == 0), "%d parts are missing",
                  missing);
    }
    job_eager(1, 0, 1 - sequence, TAG + 1, NULL, 0);
    CHECK(job_is_complete(other), "the empty message");
    CHECK(job_is_complete(request), "the message is whole");
    CHECK(memcmp(buffer, whole, SIZE) == 0 && buffer[SIZE] == CANARY, "other bytes");
    CHECK(job_ompi(request)->req_status._ucount == SIZE, "%zu bytes",
          job_ompi(request)->req_status._ucount);
    job_part(1, 0, sequence, TAG, whole, SIZE, 0, PART); /* a part of what is done with */
    CHECK(!assembly_next(job_peer(1), NULL) && job_comm()->unexpected.count == 0,
          "something is left");
    CHECK(multilane.bad_headers == 0, "a duplicate is an error");
    CHECK(job_free(job_ompi(request)) == MPI_SUCCESS && job_free(job_ompi(other)) == MPI_SUCCESS,
          "an error");
}

static void parts_in_any_order_make_the_message(void)
{
    unsigned seeds = check_is_long() ? 2000 : 60;
    begin();
    for (size_t i = 0; i < SIZE; i++)
        whole[i] = (unsigned char) (i * 31 + i / 256);
    for (unsigned seed = 1; seed <= seeds; seed++)
        for (int posted = 0; posted <= PARTS; posted++)
            assemble(seed * UINT64_C(0x9e3779b97f4a7c15), posted);
    CHECK(job_peer(1)->in.held == 0, "%u units are held", job_peer(1)->in.held);
    CHECK(job_kept() == 0, "%zu messages are kept", job_kept());
    job_end();
}

/* The message goes on as if they had not come. */
static void parts_that_do_not_fit_are_refused(void)
{
    begin();
    memset(buffer, CANARY, sizeof(buffer));
    struct recv_request *request = job_receive(buffer, SIZE, 1, TAG);
    job_part(1, 0, 0, TAG, whole, SIZE, 0, 500);
    job_part(1, 1, 0, TAG, whole, SIZE - 1, 500, 499);
    CHECK(multilane.bad_headers == 1, "of another size");
    job_part(1, 1, 0, TAG + 1, whole, SIZE, 500, 500);
    CHECK(multilane.bad_headers == 2, "of another tag");
    job_part(1, 1, 0, TAG, whole, 400, 300, 101);
    CHECK(multilane.bad_headers == 3, "longer than its message");
    job_part(1, 1, 0, TAG, whole, 400, 401, 1);
    CHECK(multilane.bad_headers == 4, "behind its message");
    job_part(1, 1, 0, TAG, whole, SIZE, 500, 0);
    CHECK(multilane.bad_headers == 5, "without bytes");
    job_part(1, 1, 1, TAG, whole, SIZE_MAX / 2, 0, 10);
    CHECK(multilane.bad_headers == 6, "of a message larger than there is room for");
    job_part(1, 1, 1 + EARLY_MAX + 1, TAG, whole, SIZE, 0, 10);
    CHECK(multilane.bad_headers == 7, "further ahead than can be");
    CHECK(!job_is_complete(request) && buffer[500] == CANARY, "they count");
    job_part(1, 1, 0, TAG, whole, SIZE, 500, 500);
    CHECK(multilane.bad_headers == 7, "what fits is refused");
    CHECK(job_is_complete(request) && memcmp(buffer, whole, SIZE) == 0, "other bytes");
    job_free(job_ompi(request));
    job_end();
}

static void a_number_is_of_a_whole_message_or_of_parts(void)
{
    begin();
    job_eager(1, 0, 1, TAG, whole, 8); /* both early */
    job_part(1, 1, 1, TAG, whole, SIZE, 0, 10);
    CHECK(multilane.bad_headers == 1, "a part of what came whole");
    job_part(1, 1, 2, TAG, whole, SIZE, 0, SIZE);
    job_eager(1, 0, 2, TAG, whole, 8);
    CHECK(multilane.bad_headers == 1, "a duplicate");
    job_eager(1, 0, 0, TAG, whole, 8);
    static const size_t sizes[] = {8, 8, SIZE};
    for (int i = 0; i < 3; i++) {
        struct recv_request *request = job_receive(buffer, SIZE, 1, TAG);
        CHECK(job_is_complete(request) && job_ompi(request)->req_status._ucount == sizes[i],
              "message %d: %zu bytes", i, job_ompi(request)->req_status._ucount);
        job_free(job_ompi(request));
    }
    job_end();
}

static void a_lost_peer_ends_a_message_of_which_parts_are_missing(void)
{
    begin();
    struct recv_request *attached = job_receive(buffer, SIZE, 1, TAG);
    job_part(1, 0, 0, TAG, whole, SIZE, 0, 10);
    job_part(1, 0, 1, TAG, whole, SIZE, 0, 10); /* kept */
    job_part(2, 0, 0, TAG, whole, SIZE, 0, 10); /* another peer's */
    struct recv_request *other = job_receive(buffer, SIZE, 2, TAG);
    job_peer(1)->lost = true;
    assemblies_lost(job_peer(1));
    CHECK(job_is_complete(attached), "its receive goes on");
    int error = job_free(job_ompi(attached));
    CHECK(error == COMPAT_ERR_PROC_FAILED, "MPI_ERROR is %d", error);
    struct recv_request *late = job_receive(buffer, SIZE, 1, TAG);
    CHECK(job_is_complete(late), "a later receive of what was kept goes on");
    error = job_free(job_ompi(late));
    CHECK(error == COMPAT_ERR_PROC_FAILED, "MPI_ERROR is %d", error);
    CHECK(!job_is_complete(other), "another peer's message has ended");
    job_part(2, 0, 0, TAG, whole, SIZE, 10, SIZE - 10);
    CHECK(job_is_complete(other) && job_free(job_ompi(other)) == MPI_SUCCESS, "it is whole");
    job_peer(1)->lost = false;
    job_part(1, 0, 0, TAG, whole, SIZE, 10, SIZE - 10); /* what was still on its way */
    job_part(1, 0, 1, TAG, whole, SIZE, 10, SIZE - 10);
    CHECK(!assembly_next(job_peer(1), NULL) && job_kept() == 0, "%zu refused messages stay",
          job_kept());
    job_end();
}

/* As many as lack a part on a lane that is far behind: each search for one passes few others. */
static void a_part_finds_its_message_among_many(void)
{
    const uint32_t messages = 8000;
    uint32_t longest = 0;
    begin();
    for (uint32_t i = 0; i < messages; i++)
        job_part(1, 0, i, TAG, whole, 2 * PART, 0, PART);
    for (uint32_t i = 0; i < ASSEMBLY_BUCKETS; i++) {
        uint32_t count = 0;
        for (const struct inbound *at = *assembly_bucket(job_peer(1), i); at;
             at = at->next_assembly)
            count++;
        longest = count > longest ? count : longest;
    }
    CHECK(longest <= messages / ASSEMBLY_BUCKETS + 1, "%u of %u", longest, messages);
    for (uint32_t i = 0; i < messages; i++)
        job_part(1, 1, i, TAG, whole, 2 * PART, PART, PART);
    CHECK(!assembly_next(job_peer(1), NULL), "something is left");
    job_end();
}

/* --- headers ------------------------------------------------------------------------------------
 */

static void header_refused(const void *header, size_t length, const char *what)
{
    uint64_t before = multilane.bad_headers;
    job_bytes(1, 0, header, length, NULL, 0);
    CHECK(multilane.bad_headers == before + 1, "%s is taken", what);
}

static void headers_that_make_no_sense_are_refused(void)
{
    const struct wire_plain good = {.base = {.type = WIRE_EAGER, .from = 1},
                                    .match = {.source = 1, .tag = TAG}};
    struct wire_plain plain;
    begin();
    for (size_t length = 0; length < sizeof(good); length++)
        header_refused(&good, length, "part of a header");
    CHECK(standin_failures == 1, "one lane is given up, not %u", standin_failures);
#define REFUSED(field, value, what)                                                                \
    plain = good;                                                                                  \
    plain.field = (value);                                                                         \
    header_refused(&plain, sizeof(plain), what)
    REFUSED(base.type, 0, "no type");
    REFUSED(base.type, WIRE_TYPES, "a type that does not exist");
    REFUSED(base.flags, WIRE_FLAGS + 1, "a flag that does not exist");
    REFUSED(base.from, JOB_RANKS, "a sender that does not exist");
    REFUSED(base.from, 0, "our own name");
    REFUSED(match.source, JOB_RANKS, "a source outside the communicator");
    REFUSED(match.source, -1, "a source below 0");
    REFUSED(match.tag, MATCH_ANY, "any tag");
    REFUSED(match.context, COMPAT_MAX_CONTEXT + 1, "a communicator that cannot be");
#undef REFUSED
    job_end();
}

static void payloads_in_several_segments_are_one_message(void)
{
    const struct wire_plain header = {.base = {.type = WIRE_EAGER, .from = 1},
                                      .match = {.source = 1, .tag = TAG}};
    unsigned char first[sizeof(header) + 10];
    mca_btl_base_segment_t segments[2] = {{.seg_addr.pval = first, .seg_len = sizeof(first)},
                                          {.seg_addr.pval = whole + 10, .seg_len = SIZE - 10}};
    begin();
    memcpy(first, &header, sizeof(header));
    memcpy(first + sizeof(header), whole, 10);
    memset(buffer, CANARY, sizeof(buffer));
    struct recv_request *request = job_receive(buffer, sizeof(buffer), 1, TAG);
    compat_btl_deliver(job_peer(1)->lanes[0].btl, job_peer(1)->lanes[0].endpoint, WIRE_TAG,
                       segments, 2);
    CHECK(job_is_complete(request) && job_ompi(request)->req_status._ucount == SIZE, "%zu bytes",
          job_ompi(request)->req_status._ucount);
    CHECK(memcmp(buffer, whole, SIZE) == 0 && buffer[SIZE] == CANARY, "other bytes");
    job_free(job_ompi(request));
    job_end();
}

int main(void)
{
    messages_that_overtake_each_other_are_received_in_order();
    a_peer_does_not_wait_for_another_ones_messages();
    numbers_wrap();
    a_new_communicator_takes_what_came_before_it();
    parts_in_any_order_make_the_message();
    parts_that_do_not_fit_are_refused();
    a_number_is_of_a_whole_message_or_of_parts();
    a_lost_peer_ends_a_message_of_which_parts_are_missing();
    a_part_finds_its_message_among_many();
    headers_that_make_no_sense_are_refused();
    payloads_in_several_segments_are_one_message();
    return check_end();
}
