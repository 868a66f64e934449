/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's end of flow control: when senders are granted room, what the pool lends, and that
 * a sender without room gets some where a receive or a probe waits for it, and only there. */
#include "check.h"

#include <string.h>

#include "entry/calls.h"
#include "job_standin.h"
#include "match/inbound.h"
#include "progress_standin.h"

#define WINDOW      1200
#define STARVED_NS  UINT64_C(2000000)
#define TAG         5
#define OTHER_TAG   6
#define COST        FLOW_MESSAGE_UNITS /* of a message without bytes */
#define MILLISECOND UINT64_C(1000000)

static uint32_t sequence;

static void begin(uint32_t pool)
{
    job_begin(WINDOW, pool);
    sequence = 0;
}

static void one_comes(void)
{
    job_eager(1, 0, sequence++, TAG, NULL, 0);
}

static void one_is_received(void)
{
    struct recv_request *request = job_receive(NULL, 0, 1, TAG);
    CHECK(job_is_complete(request), "nothing was kept");
    job_free(job_ompi(request));
}

static unsigned grants(void)
{
    return job_count(1, WIRE_CREDIT);
}

static struct wire_credit last_grant(void)
{
    struct wire_credit credit = {0, 0};
    const void *last = job_last(1, WIRE_CREDIT);
    CHECK(last, "the sender was granted nothing");
    if (last)
        memcpy(&credit, last, sizeof(credit));
    return credit;
}

static void pass(uint64_t ns)
{
    standin_now_ns += ns;
    progress_standin_run();
}

/* --- room ---------------------------------------------------------------------------------------
 */

static void a_sender_is_granted_more_when_a_quarter_of_its_room_was_matched(void)
{
    begin(0);
    const uint32_t step = (WINDOW + flow_headers(WINDOW)) / 4, count = (step + COST - 1) / COST;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(grants() == 0, "after %u units of %u", i * COST, step);
        struct recv_request *request = job_receive(NULL, 0, 1, TAG);
        one_comes();
        job_free(job_ompi(request));
    }
    CHECK(grants() == 1, "granted %u times after %u units", grants(), count * COST);
    struct wire_credit credit = last_grant();
    CHECK(credit.limit == count * COST + WINDOW, "up to %u", credit.limit);
    CHECK(credit.headers == credit.limit + flow_headers(WINDOW), "RTS up to %u", credit.headers);
    job_end();
}

static void what_is_kept_makes_no_room_until_it_is_received(void)
{
    begin(0);
    const uint32_t step = (WINDOW + flow_headers(WINDOW)) / 4, count = (step + COST - 1) / COST;
    for (uint32_t i = 0; i < count; i++)
        one_comes();
    CHECK(grants() == 0 && job_peer(1)->in.held == count * COST, "%u units are held",
          job_peer(1)->in.held);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(grants() == 0, "after %u messages of %u", i, count);
        one_is_received();
    }
    CHECK(grants() == 1 && last_grant().limit == count * COST + WINDOW, "up to %u",
          last_grant().limit);
    CHECK(job_peer(1)->in.held == 0, "%u units are held", job_peer(1)->in.held);
    job_end();
}

/* --- the pool -----------------------------------------------------------------------------------
 */

static void the_pool_lends_to_those_that_send_and_gets_it_back(void)
{
    const uint32_t pool = 100000;
    begin(pool);
    const struct flow_in *in = &job_peer(1)->in, *other = &job_peer(2)->in;
    for (uint32_t i = 0; i < 2000; i++) {
        one_comes();
        CHECK(in->window - in->least + multilane.pool.left == pool, "%u + %u units of %u",
              in->window - in->least, multilane.pool.left, pool);
    }
    CHECK(in->window > 10 * WINDOW && grants() > 0 && last_grant().limit == in->window,
          "a window of %u, granted %u times", in->window, grants());
    CHECK(multilane.pool.left > pool / 4, "%u are left for others", multilane.pool.left);
    uint32_t first = in->window;
    for (uint32_t i = 0; i < 1000; i++)
        job_eager(2, 0, i, TAG, NULL, 0);
    CHECK(other->window > 5 * WINDOW && in->window == first, "windows of %u and %u", in->window,
          other->window);
    credit_end(job_peer(1));
    credit_end(job_peer(2));
    CHECK(multilane.pool.left == pool && in->window == WINDOW && other->window == WINDOW,
          "%u are back", multilane.pool.left);
    job_end();
}

/* --- without room -------------------------------------------------------------------------------
 */

/* So many are kept that the sender may send no more. */
static void starve(void)
{
    while (!flow_is_exhausted(&job_peer(1)->in))
        one_comes();
    CHECK(job_peer(1)->starved && grants() == 0, "granted %u times", grants());
}

static void starved_sender_gets_nothing(const char *what)
{
    unsigned before = grants();
    for (int i = 0; i < 20; i++)
        pass(MILLISECOND);
    CHECK(grants() == before, "%s", what);
}

static void check_extended(uint32_t headers)
{
    CHECK(last_grant().headers == headers + FLOW_EXTENSION_UNITS, "RTS up to %u, and then %u",
          headers, last_grant().headers);
}

static void a_sender_without_room_gets_some_where_a_receive_waits(void)
{
    begin(0);
    starve();
    const uint32_t headers = WINDOW + flow_headers(WINDOW);
    starved_sender_gets_nothing("no receive waits");
    struct recv_request *others = job_receive(NULL, 0, 2, OTHER_TAG);
    starved_sender_gets_nothing("the receive is of another peer");
    struct recv_request *request = job_receive(NULL, 0, 1, OTHER_TAG);
    pass(0);
    CHECK(grants() == 0, "the last look was just now");
    pass(STARVED_NS);
    CHECK(grants() == 1, "granted %u times", grants());
    check_extended(headers);
    CHECK(last_grant().limit == WINDOW, "eager data up to %u", last_grant().limit);
    for (int i = 0; i < 10; i++)
        pass(STARVED_NS);
    CHECK(grants() == 1, "it has not used what it got, and was granted %u times", grants());

    uint32_t used = 0;
    for (; !flow_is_exhausted(&job_peer(1)->in); used++)
        one_comes();
    CHECK(used >= FLOW_EXTENSION_UNITS / COST - FLOW_SMALL_UNITS / COST, "%u messages", used);
    pass(0);
    pass(STARVED_NS - 1);
    CHECK(grants() == 1, "before its time");
    pass(1);
    CHECK(grants() == 2, "granted %u times", grants());
    check_extended(headers + FLOW_EXTENSION_UNITS);

    job_eager(1, 0, sequence++, OTHER_TAG, NULL, 0);
    CHECK(job_is_complete(request) && !job_is_complete(others), "what was waited for");
    job_free(job_ompi(request));
    ompi_request_cancel(job_ompi(others));
    job_free(job_ompi(others));
    while (job_comm()->unexpected.count)
        one_is_received();
    pass(STARVED_NS);
    CHECK(!job_peer(1)->starved && !pending_queue.first, "it is still looked at");
    CHECK(job_peer(1)->in.held == 0, "%u units are held", job_peer(1)->in.held);
    job_end();
}

static void a_receive_from_any_source_waits_for_each(void)
{
    begin(0);
    starve();
    struct recv_request *request = job_receive(NULL, 0, OMPI_ANY_SOURCE, OTHER_TAG);
    pass(0);
    pass(STARVED_NS);
    CHECK(grants() == 1, "granted %u times", grants());
    ompi_request_cancel(job_ompi(request));
    job_free(job_ompi(request));
    job_end();
}

/* Each miss counts once. */
static void a_missed_probe_waits_too(void)
{
    int found = true;
    begin(0);
    starve();
    pass(0);
    module_iprobe(1, OTHER_TAG, &job_ompi_comm, &found, MPI_STATUS_IGNORE);
    CHECK(!found, "there is no such message");
    pass(STARVED_NS);
    CHECK(grants() == 1, "granted %u times", grants());
    while (!flow_is_exhausted(&job_peer(1)->in))
        one_comes();
    starved_sender_gets_nothing("no further probe has missed it");
    job_end();
}

int main(void)
{
    a_sender_is_granted_more_when_a_quarter_of_its_room_was_matched();
    what_is_kept_makes_no_room_until_it_is_received();
    the_pool_lends_to_those_that_send_and_gets_it_back();
    a_sender_without_room_gets_some_where_a_receive_waits();
    a_receive_from_any_source_waits_for_each();
    a_missed_probe_waits_too();
    return check_end();
}
