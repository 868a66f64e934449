/* SPDX-License-Identifier: BSD-3-Clause */
/* A blocking receive, which has no request while its message is near: whatever comes meanwhile, it
 * gets what a posted receive in its place would get. */
#include "check.h"

#include <string.h>

#include "common/compat/btl.h"
#include "entry/calls.h"
#include "job_standin.h"
#include "join/posting.h"
#include "progress_standin.h"

#define TAG    5
#define SIZE   3000
#define CANARY 0x5a

static unsigned char sent[SIZE], buffer[SIZE + 1];
static int got;
static ompi_status_public_t status;
static struct recv_request *other; /* a receive beside the blocking one */
static int other_got;

/* What comes while the blocking receive polls its lane: the next of these at each poll. */
static void (*const *next_event)(void);

static void nothing_comes(void)
{
}

static int poll(void)
{
    if (!next_event || !*next_event)
        return 0;
    void (*event)(void) = *next_event++;
    event();
    return event != nothing_comes;
}

/* The request that a receive would take next. */
static struct recv_request *next_request(void)
{
    opal_list_item_t *next =
        (opal_list_item_t *) opal_lifo_pop_st(&mca_pml_base_recv_requests.super);
    opal_lifo_push_st(&mca_pml_base_recv_requests.super, next);
    return (struct recv_request *) next;
}

static void begin(void (*const *events)(void))
{
    job_begin(1 << 20, 0);
    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (unsigned char) (i * 31 + i / 256);
    memset(buffer, CANARY, sizeof(buffer));
    memset(&status, 0, sizeof(status));
    got = other_got = -1;
    other = NULL;
    next_event = events;
    next_request()->base.req_base.req_addr = sent; /* no receive has it as its buffer */
    comm_peer(job_comm(), 1);                      /* a lane is polled only for one that was met */
    for (int lane = 0; lane < JOB_LANES; lane++)
        job_peer(1)->lanes[lane].btl->btl_component->btl_progress = poll;
}

/* Of the blocking receive's requests: none was needed, or one, which is given back. */
static void end(bool by_request)
{
    CHECK((next_request()->base.req_base.req_addr != sent) == by_request, "it had %s request",
          by_request ? "no" : "a");
    CHECK(!direct_receive && job_comm()->posted.count == 0 && job_comm()->unexpected.count == 0,
          "something is left");
    CHECK(!next_event || !*next_event, "it ended before all had come");
    job_end();
}

static int receive_number(int tag)
{
    return module_recv(&got, sizeof(got), &ompi_mpi_byte.dt, 1, tag, &job_ompi_comm, &status);
}

static int receive_bytes(size_t room)
{
    return module_recv(buffer, room, &ompi_mpi_byte.dt, 1, TAG, &job_ompi_comm, &status);
}

static void number_comes(int rank, uint32_t sequence, int tag, int number)
{
    job_eager(rank, 0, sequence, tag, &number, sizeof(number));
}

static void check_number(int rc, int number, int tag)
{
    CHECK(rc == OMPI_SUCCESS && got == number, "%d, the number is %d, not %d", rc, got, number);
    CHECK(status.MPI_SOURCE == 1 && status.MPI_TAG == tag && status._ucount == sizeof(got),
          "its status: source %d, tag %d, %zu bytes", status.MPI_SOURCE, status.MPI_TAG,
          status._ucount);
}

static void check_bytes(int rc, size_t size)
{
    CHECK(rc == OMPI_SUCCESS && status._ucount == size, "%d, %zu bytes", rc, status._ucount);
    CHECK(memcmp(buffer, sent, size) == 0 && buffer[size] == CANARY, "other bytes");
}

/* --- events -------------------------------------------------------------------------------------
 */

static void first_comes(void)
{
    number_comes(1, 0, TAG, 100);
}

static void second_comes(void)
{
    number_comes(1, 1, TAG, 101);
}

static void of_another_tag_comes(void)
{
    number_comes(1, 0, TAG + 1, 200);
}

static void of_open_mpi_comes(void)
{
    number_comes(1, 0, -20, 300);
}

static void of_another_rank_comes(void)
{
    number_comes(2, 0, TAG, 400);
}

static void other_is_posted(void)
{
    other = job_receive(&other_got, sizeof(other_got), 1, TAG);
}

static void large_comes(void)
{
    job_eager(1, 0, 0, TAG, sent, SIZE);
}

static void large_is_announced(void)
{
    job_rts(1, 0, 0, TAG, SIZE, WIRE_BY_SEND, (struct wire_handle){3, 9});
}

static void asked_for_comes(void)
{
    struct wire_rtr rtr;
    memcpy(&rtr, job_last(1, WIRE_RTR), sizeof(rtr));
    const struct wire_data data = {.receiver = rtr.receiver};
    job_control(1, 0, WIRE_DATA, &data, sizeof(data), sent, SIZE);
}

static void first_part_comes(void)
{
    job_part(1, 0, 0, TAG, sent, SIZE, 0, 1000);
}

static void other_part_comes(void)
{
    job_part(1, 1, 0, TAG, sent, SIZE, 1000, SIZE - 1000);
}

static void synchronous_comes(void)
{
    job_synchronous(1, 0, 0, TAG, &(int){500}, sizeof(int), (struct wire_handle){3, 9});
}

/* Its sender wants to know when it has come. */
static void timed_comes(void)
{
    job_synchronous(1, 0, 0, TAG, &(int){600}, sizeof(int),
                    (struct wire_handle){WIRE_TIMER_FIRST, 1});
}

/* --- tests --------------------------------------------------------------------------------------
 */

typedef void (*const events[])(void);

static void a_message_that_is_near_needs_no_request(void)
{
    begin((events){nothing_comes, first_comes, NULL});
    check_number(receive_number(TAG), 100, TAG);
    CHECK(multilane.unexpected_messages == 0, "it counts as unexpected");
    end(false);

    begin((events){first_comes, NULL});
    check_number(receive_number(OMPI_ANY_TAG), 100, TAG);
    end(false);

    begin((events){large_comes, NULL});
    check_bytes(receive_bytes(SIZE), SIZE);
    end(false);
}

/* Others come first: of another tag, of another rank, and of Open MPI's own, which no MPI_ANY_TAG
 * means. */
static void messages_for_others_wait_for_them(void)
{
    static void (*const others[])(void) = {of_another_tag_comes, of_open_mpi_comes};
    for (int i = 0; i < 2; i++) {
        int tag = i ? OMPI_ANY_TAG : TAG;
        begin((events){others[i], of_another_rank_comes, second_comes, NULL});
        check_number(receive_number(tag), 101, TAG);
        CHECK(job_comm()->unexpected.count == 2, "%u wait", job_comm()->unexpected.count);
        check_number(receive_number(i ? -20 : TAG + 1), i ? 300 : 200, i ? -20 : TAG + 1);
        module_recv(&got, sizeof(got), &ompi_mpi_byte.dt, 2, TAG, &job_ompi_comm, &status);
        CHECK(got == 400, "the number is %d", got);
        end(false);
    }
}

static void receives_that_were_posted_before_come_first(void)
{
    begin((events){first_comes, second_comes, NULL});
    other_is_posted();
    check_number(receive_number(TAG), 101, TAG);
    CHECK(job_is_complete(other) && other_got == 100, "the other got %d", other_got);
    job_free(job_ompi(other));
    end(true);
}

/* As by a completion that posts the next receive. */
static void receives_that_are_posted_meanwhile_come_later(void)
{
    begin((events){other_is_posted, first_comes, second_comes, NULL});
    check_number(receive_number(TAG), 100, TAG);
    while (*next_event)
        poll();
    CHECK(job_is_complete(other) && other_got == 101, "the other got %d", other_got);
    job_free(job_ompi(other));
    end(true);
}

static void messages_that_overtake_are_received_in_order(void)
{
    begin((events){second_comes, first_comes, NULL});
    check_number(receive_number(TAG), 100, TAG);
    check_number(receive_number(TAG), 101, TAG);
    end(true);
}

static void what_is_more_than_a_short_message_is_received(void)
{
    begin((events){large_is_announced, nothing_comes, asked_for_comes, NULL});
    check_bytes(receive_bytes(SIZE), SIZE);
    end(true);

    begin((events){first_part_comes, other_part_comes, NULL});
    check_bytes(receive_bytes(SIZE), SIZE);
    end(true);

    begin((events){synchronous_comes, NULL});
    check_number(receive_number(TAG), 500, TAG);
    CHECK(job_count(1, WIRE_ACK) == 1, "its sender is told %u times", job_count(1, WIRE_ACK));
    end(true);
}

static void what_is_too_long_is_cut(void)
{
    begin((events){large_comes, NULL});
    int rc = receive_bytes(1000);
    CHECK(rc == MPI_ERR_TRUNCATE, "MPI_ERROR is %d", rc);
    CHECK(memcmp(buffer, sent, 1000) == 0 && buffer[1000] == CANARY, "other bytes");
    end(true);
}

/* The first that comes is for another receive, and is longer than this one's buffer. */
static void a_long_one_for_another_receive_harms_nothing(void)
{
    static unsigned char long_one[SIZE];
    begin((events){large_comes, second_comes, NULL});
    other = job_receive(long_one, sizeof(long_one), 1, OMPI_ANY_TAG);
    check_number(receive_number(TAG), 101, TAG);
    CHECK(job_is_complete(other) && memcmp(long_one, sent, SIZE) == 0, "other bytes");
    job_free(job_ompi(other));
    end(true);
}

static bool its_time_counts(void)
{
    struct wire_time time;
    const void *answer = job_last(1, WIRE_TIME);
    CHECK(answer && job_count(1, WIRE_TIME) == 1, "%u answers", job_count(1, WIRE_TIME));
    if (answer)
        memcpy(&time, answer, sizeof(time));
    return answer && !time.may_have_lain;
}

/* How long a message lay there that is found at once is not known: its receiver was away. */
static void the_time_of_a_message_counts_where_it_was_looked_for(void)
{
    begin((events){timed_comes, NULL});
    check_number(receive_number(TAG), 600, TAG);
    CHECK(!its_time_counts(), "found by the first look");
    end(true);

    begin((events){nothing_comes, nothing_comes, timed_comes, NULL});
    check_number(receive_number(TAG), 600, TAG);
    CHECK(its_time_counts(), "it was a direct receive");
    end(true);

    for (int rounds = 0; rounds <= 2; rounds += 2) {
        begin(NULL);
        other_is_posted();
        for (int i = 0; i < rounds; i++)
            progress_standin_run();
        timed_comes();
        CHECK(job_is_complete(other) && other_got == 600, "the number is %d", other_got);
        CHECK(its_time_counts() == (rounds == 2), "after %d rounds", rounds);
        job_free(job_ompi(other));
        end(true);
    }
}

/* By the last look before the receive would be posted. */
static void a_message_at_the_last_look_is_received(void)
{
    static void (*looks[REQUEST_TURNS * REQUEST_LOOKS + 1])(void);
    for (int i = 0; i < REQUEST_TURNS * REQUEST_LOOKS; i++)
        looks[i] = nothing_comes;
    looks[REQUEST_TURNS * REQUEST_LOOKS - 1] = first_comes;
    begin(looks);
    check_number(receive_number(TAG), 100, TAG);
    end(false);
}

int main(void)
{
    parameters.learn = 1;
    the_time_of_a_message_counts_where_it_was_looked_for();
    a_message_at_the_last_look_is_received();
    a_message_that_is_near_needs_no_request();
    messages_for_others_wait_for_them();
    receives_that_were_posted_before_come_first();
    receives_that_are_posted_meanwhile_come_later();
    messages_that_overtake_are_received_in_order();
    what_is_more_than_a_short_message_is_received();
    what_is_too_long_is_cut();
    a_long_one_for_another_receive_harms_nothing();
    return check_end();
}
