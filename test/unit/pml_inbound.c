/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that are kept until a receive asks for them: found in MPI's order whatever is asked for,
 * and each once. */
#include "check.h"

#include <string.h>

#include "entry/calls.h"
#include "job_standin.h"
#include "match/inbound.h"

#define LONG_BYTES 5000 /* does not fit an inbound */

static uint32_t next_sequence[JOB_RANKS];

static void send_from(int rank, int tag, const void *data, size_t size)
{
    job_eager(rank, 0, next_sequence[rank]++, tag, data, size);
}

static void begin(void)
{
    job_begin(1 << 20, 0);
    memset(next_sequence, 0, sizeof(next_sequence));
}

/* What a message says about itself. */
struct said {
    int rank, number;
};

static struct said take(int source, int tag)
{
    struct said said = {-1, -1};
    struct recv_request *request = job_receive(&said, sizeof(said), source, tag);
    CHECK(job_is_complete(request), "source %d, tag %d: nothing was kept", source, tag);
    CHECK(job_ompi(request)->req_status.MPI_SOURCE == said.rank, "from %d, its status says %d",
          said.rank, job_ompi(request)->req_status.MPI_SOURCE);
    job_free(job_ompi(request));
    return said;
}

static void say(int rank, int tag, int number)
{
    const struct said said = {rank, number};
    send_from(rank, tag, &said, sizeof(said));
}

static void check_said(struct said said, int rank, int number)
{
    CHECK(said.rank == rank && said.number == number, "message %d of rank %d, not %d of %d",
          said.number, said.rank, number, rank);
}

static void what_is_kept_is_found_by_source_and_tag_in_order(void)
{
    begin();
    say(1, 7, 0);
    say(2, 7, 1);
    say(1, 8, 2);
    say(1, 7, 3);
    CHECK(job_comm()->unexpected.count == 4, "%u are kept", job_comm()->unexpected.count);
    check_said(take(1, 8), 1, 2);
    check_said(take(1, 7), 1, 0);
    check_said(take(1, 7), 1, 3);
    check_said(take(2, 7), 2, 1);
    CHECK(job_comm()->unexpected.count == 0, "%u are left", job_comm()->unexpected.count);
    CHECK(job_peer(1)->in.held == 0 && job_peer(2)->in.held == 0, "what was received is held");
    job_end();
}

/* Until then messages are listed under their own key alone. */
static void wildcards_that_begin_late_find_what_waits_in_order(void)
{
    begin();
    for (int i = 0; i < 60; i++)
        say(1 + i % 2, i % 5, i);
    CHECK(!job_comm()->wildcards && job_comm()->unexpected.count == 60,
          "no wildcard was asked for");
    check_said(take(OMPI_ANY_SOURCE, 3), 2, 3);
    CHECK(job_comm()->wildcards, "one was");
    check_said(take(1, OMPI_ANY_TAG), 1, 0);
    check_said(take(OMPI_ANY_SOURCE, OMPI_ANY_TAG), 2, 1);
    say(2, 4, 60); /* listed under all its keys from now on */
    for (int i = 2; i < 60; i++)
        if (i != 3)
            check_said(take(OMPI_ANY_SOURCE, OMPI_ANY_TAG), 1 + i % 2, i);
    check_said(take(2, OMPI_ANY_TAG), 2, 60);
    CHECK(job_comm()->unexpected.count == 0, "%u keys are left", job_comm()->unexpected.count);
    job_end();
}

/* Tags below 0 are Open MPI's own. */
static void a_wildcard_tag_finds_no_message_of_open_mpi_itself(void)
{
    begin();
    say(1, -20, 0);
    OPAL_THREAD_LOCK(&job_comm()->lock);
    CHECK(!inbound_find(job_comm(), OMPI_ANY_SOURCE, OMPI_ANY_TAG), "by no source and no tag");
    CHECK(!inbound_find(job_comm(), 1, OMPI_ANY_TAG), "by its source alone");
    CHECK(inbound_find(job_comm(), OMPI_ANY_SOURCE, -20), "by its tag alone");
    OPAL_THREAD_UNLOCK(&job_comm()->lock);
    check_said(take(OMPI_ANY_SOURCE, -20), 1, 0);
    job_end();
}

static void a_long_message_is_kept_whole(void)
{
    static char sent[LONG_BYTES], received[LONG_BYTES];
    begin();
    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (char) (i * 7);
    for (size_t size = 0; size <= sizeof(sent); size = size < 200 ? size + 1 : size * 2 + 1) {
        memset(received, 0, sizeof(received));
        send_from(1, 1, sent, size);
        struct recv_request *request = job_receive(received, sizeof(received), 1, 1);
        CHECK(job_is_complete(request) && job_ompi(request)->req_status._ucount == size,
              "%zu bytes: %zu", size, job_ompi(request)->req_status._ucount);
        CHECK(memcmp(sent, received, size) == 0 && (size == sizeof(sent) || !received[size]),
              "%zu bytes: other ones", size);
        CHECK(job_free(job_ompi(request)) == MPI_SUCCESS, "%zu bytes", size);
    }
    job_end();
}

static void only_a_plain_message_that_fits_is_taken_at_once(void)
{
    static const struct wire_handle sender = {5, 6};
    begin();
    send_from(1, 1, "12345678", 8);
    CHECK(!inbound_take_plain(job_comm(), 1, 1, 7), "it does not fit");
    CHECK(!inbound_take_plain(job_comm(), 1, 2, 8), "of another tag");
    CHECK(job_peer(1)->in.held == FLOW_MESSAGE_UNITS, "%u are held", job_peer(1)->in.held);
    struct inbound *inbound = inbound_take_plain(job_comm(), OMPI_ANY_SOURCE, 1, 8);
    CHECK(inbound && inbound->arrival.size == 8 && memcmp(inbound->data, "12345678", 8) == 0,
          "it fits");
    CHECK(job_peer(1)->in.held == 0, "%u are held", job_peer(1)->in.held);
    CHECK(!inbound_take_plain(job_comm(), 1, 1, 8), "twice");
    if (inbound)
        inbound_free(inbound);
    job_rts(1, 0, next_sequence[1]++, 1, 4, WIRE_BY_SEND, sender);
    CHECK(!inbound_take_plain(job_comm(), 1, 1, 8), "its sender waits for an answer");
    job_end();
}

/* Of what comes before its turn nothing is found, and all of it in its turn. */
static void what_is_early_is_found_in_its_turn(void)
{
    const struct said second = {1, 2}, third = {1, 3};
    begin();
    say(1, 0, 0);
    job_eager(1, 1, 3, 0, &third, sizeof(third));
    job_eager(1, 1, 2, 0, &second, sizeof(second));
    job_eager(1, 0, 2, 0, &second, sizeof(second)); /* again, by another lane */
    CHECK(job_comm()->unexpected.count == 1 && job_peer(1)->early, "%u are kept",
          job_comm()->unexpected.count);
    say(1, 0, 1);
    CHECK(job_comm()->unexpected.count == 4 && !job_peer(1)->early, "%u are kept",
          job_comm()->unexpected.count);
    for (int i = 0; i < 4; i++)
        check_said(take(1, 0), 1, i);
    job_eager(1, 1, 2, 0, &second, sizeof(second)); /* and once more */
    CHECK(job_comm()->unexpected.count == 0, "a duplicate is kept");
    job_end();
}

static void a_message_waits_for_its_communicator(void)
{
    const struct said said = {1, 0}, next = {1, 1};
    begin();
    job_eager_on(77, 1, 0, 0, 0, &said, sizeof(said));
    job_eager(1, 0, 1, 0, &next, sizeof(next));
    CHECK(opal_list_get_size(&multilane.orphans) == 1, "%zu wait",
          opal_list_get_size(&multilane.orphans));
    CHECK(job_peer(1)->in.held == 2 * FLOW_MESSAGE_UNITS, "%u are held", job_peer(1)->in.held);
    check_said(take(1, 0), 1, 1);
    while (opal_list_get_size(&multilane.orphans))
        inbound_drop((struct inbound *) opal_list_remove_first(&multilane.orphans));
    CHECK(job_peer(1)->in.held == 0, "%u are held", job_peer(1)->in.held);
    job_end();
}

/* What no receive has taken when the communicator ends is given back, and so is what it took. */
static void what_is_dropped_takes_nothing(void)
{
    static char bytes[LONG_BYTES];
    begin();
    for (int i = 0; i < 10; i++)
        send_from(2, i, bytes, (size_t) i * 500);
    CHECK(job_peer(2)->in.held > 0, "nothing is held");
    module_del_comm(&job_ompi_comm);
    CHECK(job_peer(2)->in.held == 0 && job_kept() == 0, "%u are held, %zu kept",
          job_peer(2)->in.held, job_kept());
    module_add_comm(&job_ompi_comm);
    job_end();
}

int main(void)
{
    what_is_kept_is_found_by_source_and_tag_in_order();
    wildcards_that_begin_late_find_what_waits_in_order();
    a_wildcard_tag_finds_no_message_of_open_mpi_itself();
    a_long_message_is_kept_whole();
    only_a_plain_message_that_fits_is_taken_at_once();
    what_is_early_is_found_in_its_turn();
    a_message_waits_for_its_communicator();
    what_is_dropped_takes_nothing();
    return check_end();
}
