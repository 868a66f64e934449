/* SPDX-License-Identifier: BSD-3-Clause */
/* Over made-up pages: each way to hang has its cause and its culprit, and what goes on is no hang.
 */
#define _GNU_SOURCE
#include <string.h>

#include "common/report/page_take.h"
#include "test/unit/check.h"
#include "tools/top/left.h"
#include "tools/top/show.h"

#define SECOND UINT64_C(1000000000)
#define NOW    (100 * SECOND)
#define RANKS  8

static struct ranks ranks;

static struct page_comm comm_of(uint64_t id, const char *name)
{
    struct page_comm comm = {.id = {id, id}, .first = {7, 0}, .size = RANKS};
    snprintf(comm.name, sizeof(comm.name), "%s", name);
    return comm;
}

/* All are in MPI and make progress. */
static void job_begin(int count)
{
    ranks_free(&ranks);
    for (int i = 0; i < count; i++) {
        struct rank *rank = ranks_add(&ranks, 1000 + i);
        struct page *page = &rank->second.page;
        page->magic = PAGE_MAGIC;
        page->version = PAGE_VERSION;
        page->bytes = sizeof(*page);
        page->me = (struct page_process){7, (uint32_t) i};
        page->job_size = (uint32_t) count;
        page->flags = PAGE_STARTED;
        page->progressed_ns = NOW - SECOND / 100;
        page->rounds = page->refreshes = 100;
        rank->second.now_ns = NOW;
        rank->second.state = 'R';
        rank->second.cpu_ticks = 100;
    }
}

/* The first look was the same, but less far. */
static void job_look(void)
{
    for (size_t i = 0; i < ranks.count; i++) {
        struct rank *rank = &ranks.list[i];
        rank->first = rank->second;
        rank->first.now_ns -= SECOND / 3;
        rank->first.page.rounds -= rank->second.page.rounds ? 50 : 0;
        rank->first.page.refreshes -= 3;
    }
}

static struct page *page_at(int rank)
{
    return &ranks.list[rank].second.page;
}

static struct page_request *wait_add(int rank, enum page_call call, enum page_request_kind kind,
                                     int peer, int tag)
{
    struct page *page = page_at(rank);
    struct page_wait *wait = &page->waits[0];
    page->wait_count = 1;
    wait->call = call;
    wait->number = 5;
    wait->since_ns = NOW - 41 * SECOND;
    wait->outstanding++;
    struct page_request *row = &wait->rows[wait->row_count++];
    row->kind = (uint8_t) kind;
    row->stage = kind == PAGE_SENDING ? PAGE_ANNOUNCED : PAGE_UNMATCHED;
    row->rank = peer;
    row->tag = tag;
    row->peer = (struct page_process){7, peer < 0 ? PAGE_ANY_RANK : (uint32_t) peer};
    row->comm = comm_of(0, "MPI_COMM_WORLD");
    return row;
}

static void receives(int rank, int from, int tag)
{
    wait_add(rank, PAGE_RECV, PAGE_RECEIVE, from, tag);
}

static struct page_request *sends(int rank, int to, int tag)
{
    return wait_add(rank, PAGE_SEND, PAGE_SENDING, to, tag);
}

static void is_in(int rank, enum page_collective collective, int peer)
{
    wait_add(rank, PAGE_RECV, PAGE_RECEIVE, peer, -16)->collective = (uint8_t) collective;
}

static void finalizes(int rank)
{
    struct page *page = page_at(rank);
    page->wait_count = 1;
    page->waits[0].call = PAGE_FINALIZE;
    page->waits[0].number = PAGE_WAIT_FINALIZE;
    page->waits[0].since_ns = NOW - SECOND;
}

/* No round of progress between the looks. */
static void computes(int rank)
{
    page_at(rank)->rounds = 0;
    page_at(rank)->progressed_ns = NOW - 41 * SECOND;
}

static void traffic(int from, int to, uint32_t sent, uint32_t come)
{
    struct page *page = page_at(from);
    struct page_peer *row = &page->peers[page->peer_count++];
    row->name = (struct page_process){7, (uint32_t) to};
    row->sent = sent;
    page = page_at(to);
    row = &page->peers[page->peer_count++];
    row->name = (struct page_process){7, (uint32_t) from};
    row->received = come;
}

static void unexpected(int rank, int from, int tag, struct page_comm comm)
{
    struct page *page = page_at(rank);
    struct page_message *row = &page->unexpected[page->unexpected_count++];
    row->peer = (struct page_process){7, (uint32_t) from};
    row->rank = from;
    row->tag = tag;
    row->comm = comm;
    page->unexpected_total++;
}

/* The first cause, after all of them were found. */
static void found(const char *what, bool is_hang, enum cause_kind kind, int culprit,
                  const char *words)
{
    struct why why;
    job_look();
    CHECK(why_find(&ranks, &why), "%s", what);
    CHECK(why.is_hang == is_hang, "%s: hung %d", what, why.is_hang);
    CHECK(why.cause_count > 0, "%s: no cause", what);
    if (why.cause_count) {
        const struct cause *first = &why.causes[0];
        CHECK(first->kind == kind, "%s: %s, %s", what, cause_name(first->kind), first->words.text);
        CHECK(first->ranks[0] == culprit, "%s: rank %d, %s", what, first->ranks[0],
              first->words.text);
        CHECK(strstr(first->words.text, words), "%s: no \"%s\" in: %s", what, words,
              first->words.text);
    }
    FILE *nowhere = fopen("/dev/null", "w");
    show_why(nowhere, &ranks, &why);
    export_json(nowhere, &ranks, &why, true);
    fclose(nowhere);
    why_free(&why);
}

static void none(const char *what)
{
    struct why why;
    job_look();
    CHECK(why_find(&ranks, &why), "%s", what);
    CHECK(!why.is_hang, "%s: %s", what, why.cause_count ? why.causes[0].words.text : "");
    why_free(&why);
}

/* --- hangs ------------------------------------------------------------------------------------ */

static void test_messages(void)
{
    job_begin(2);
    receives(0, 1, 12);
    unexpected(0, 1, 13, comm_of(0, "MPI_COMM_WORLD"));
    receives(1, 0, 12);
    found("wrong tag", true, CAUSE_WRONG_TAG, 0, "tag 13");

    job_begin(2);
    receives(0, 1, 12);
    unexpected(0, 1, 12, comm_of(3, "rows"));
    receives(1, 0, 12);
    found("wrong communicator", true, CAUSE_WRONG_COMM, 0, "\"rows\"");

    job_begin(3);
    sends(0, 1, 12);
    unexpected(1, 0, 12, comm_of(0, "MPI_COMM_WORLD"));
    is_in(1, PAGE_BARRIER, 2);
    is_in(2, PAGE_BARRIER, 0);
    found("no receive", true, CAUSE_NO_RECEIVE, 1, "has posted no receive");

    job_begin(3);
    sends(0, 1, 12)->stage = PAGE_NO_CREDIT;
    receives(1, 2, 12);
    receives(2, 0, 12);
    found("no credit", true, CAUSE_NO_CREDIT, 1, "pml_multilane_unexpected_max");

    job_begin(3);
    sends(0, 1, 12)->bytes = 1024;
    traffic(0, 1, 100, 100);
    page_at(0)->peers[0].credit = 10;
    page_at(1)->peers[0].kept = 4400;
    receives(1, 2, 12);
    receives(2, 0, 12);
    found("no credit, and announced", true, CAUSE_NO_CREDIT, 1, "taken none of 275 KiB");

    job_begin(2);
    receives(0, 1, 12);
    receives(1, 0, 12);
    traffic(1, 0, 10, 8);
    found("lost message", true, CAUSE_LOST_MESSAGE, 1, "has sent it 10 messages, 8 have come");
}

static void test_waits(void)
{
    job_begin(4);
    sends(0, 1, 1);
    sends(1, 2, 1);
    sends(2, 0, 1);
    is_in(3, PAGE_BARRIER, 0);
    found("circle", true, CAUSE_CYCLE, 0, "circle");

    job_begin(2);
    receives(0, 1, 12);
    ranks.list[1].second.state = 'T';
    found("stopped", true, CAUSE_STOPPED, 1, "is stopped");

    job_begin(3);
    receives(0, 1, 12);
    finalizes(1);
    finalizes(2);
    found("left", true, CAUSE_LEFT, 1, "MPI_Finalize");

    job_begin(4);
    for (int i = 0; i < 4; i++)
        is_in(i, i == 2 ? PAGE_ALLREDUCE : PAGE_BARRIER, (i + 1) % 4);
    found("collectives", true, CAUSE_COLLECTIVES, 2, "rank 0-1, 3 in MPI_Barrier");

    job_begin(2);
    receives(0, -1, 12);
    finalizes(1);
    found("no sender", true, CAUSE_NO_SENDER, 0, "any rank");

    job_begin(1);
    receives(0, 0, 12);
    found("itself", true, CAUSE_CYCLE, 0, "rank 0");
}

/* Wrapped at the link (test/unit/local.mk). */
static unsigned long lookups;
int __real_ranks_find(const struct ranks *all, const struct page_process *name);
int __wrap_ranks_find(const struct ranks *all, const struct page_process *name);

int __wrap_ranks_find(const struct ranks *all, const struct page_process *name)
{
    lookups++;
    return __real_ranks_find(all, name);
}

#define MANY 256

/* Of a whole job: the time grows with the ranks, not with their square. */
static void test_many(void)
{
    job_begin(MANY);
    for (int i = 0; i < MANY; i++)
        receives(i, (i + 1) % MANY, 1);
    lookups = 0;
    found("large circle", true, CAUSE_CYCLE, 0, "256 ranks in all");
    CHECK(lookups < 40 * MANY, "%lu lookups for a circle", lookups);

    job_begin(MANY);
    for (int i = 0; i < MANY - 1; i++)
        receives(i, i + 1, 1);
    computes(MANY - 1);
    lookups = 0;
    found("chain", false, CAUSE_COMPUTES, MANY - 1, "rank 255");
    CHECK(lookups < 40 * MANY, "%lu lookups for a chain", lookups);
}

static void test_busy(void)
{
    job_begin(3);
    receives(0, 1, 12);
    receives(1, 2, 12);
    computes(2);
    found("computes", false, CAUSE_COMPUTES, 2, "computes since 41 s (not in MPI)");

    job_begin(4);
    is_in(0, PAGE_BARRIER, PAGE_ANY);
    is_in(1, PAGE_BARRIER, 0);
    is_in(3, PAGE_BARRIER, 0);
    computes(2);
    found("computes, and a barrier waits for any", false, CAUSE_COMPUTES, 2, "computes since 41 s");

    job_begin(2);
    receives(0, 1, 12);
    computes(1);
    ranks.list[1].second.state = 'S';
    found("sleeps", false, CAUSE_SLEEPS, 1, "outside MPI");
}

/* --- no hangs --------------------------------------------------------------------------------- */

/* The first look is made, and then something is moved. */
static void none_moved(const char *what, void (*move)(void))
{
    struct why why;
    job_look();
    move();
    CHECK(why_find(&ranks, &why), "%s", what);
    CHECK(!why.is_hang, "%s: %s", what, why.cause_count ? why.causes[0].words.text : "");
    why_free(&why);
}

static void new_wait(void)
{
    page_at(0)->waits[0].number++;
}

static void more_bytes(void)
{
    page_at(0)->waits[0].rows[0].left = 5;
}

static void more_messages(void)
{
    page_at(0)->peers[0].sent++;
}

static void test_healthy(void)
{
    job_begin(2);
    receives(0, 1, 12);
    none("the other is in MPI");

    job_begin(2);
    receives(0, 1, 12);
    receives(1, 0, 12);
    none_moved("another wait", new_wait);
    job_begin(2);
    receives(0, 1, 12);
    receives(1, 0, 12);
    none_moved("bytes move", more_bytes);
    job_begin(2);
    receives(0, 1, 12);
    receives(1, 0, 12);
    traffic(0, 1, 5, 5);
    none_moved("messages move", more_messages);

    job_begin(2);
    receives(0, 1, 12);
    wait_add(1, PAGE_WAITANY, PAGE_RECEIVE, 0, 12);
    receives(1, 0, 13);
    page_at(1)->waits[0].call = PAGE_WAITANY;
    page_at(1)->waits[0].outstanding = 20;
    none("one of requests that are not shown may end");

    job_begin(2);
    finalizes(0);
    finalizes(1);
    none("all are in MPI_Finalize");

    job_begin(2);
    receives(0, 1, 12);
    receives(1, 0, 12);
    ranks.list[0].second.state = ranks.list[1].second.state = 0;
    none("all have ended since their pages were read");

    job_begin(2);
    page_at(0)->job_size = 4;
    page_at(1)->job_size = 4;
    receives(0, -1, 12);
    receives(1, 3, 12);
    none("ranks of another node may send");

    job_begin(2);
    receives(0, 1, 12);
    receives(1, 0, 12);
    traffic(1, 0, 10, 8);
    page_at(1)->peers[0].unacknowledged = 2;
    none("what is missing will be sent again");
}

/* A wait for all of several requests is as hung as its worst one; a page that says nonsense is cut.
 */
static void test_bounds(void)
{
    struct error_text why;
    job_begin(3);
    receives(0, 1, 12);
    receives(0, 2, 12);
    page_at(0)->waits[0].call = PAGE_WAITALL;
    receives(1, 0, 12);
    found("one of all", true, CAUSE_CYCLE, 0, "circle");

    job_begin(1);
    struct page *page = page_at(0);
    page->wait_count = page->peer_count = page->lane_count = page->unexpected_count = UINT32_MAX;
    page->waits[3].row_count = UINT32_MAX;
    page->waits[3].call = 1000;
    memset(page->host, 'x', sizeof(page->host));
    CHECK(page_check(page, sizeof(*page), &why), "%s", why.text);
    CHECK(page->wait_count == PAGE_WAITS && page->waits[3].row_count == PAGE_REQUESTS &&
              page->waits[3].call == PAGE_NO_CALL && strlen(page->host) == PAGE_HOST - 1,
          "%u %u", page->wait_count, page->waits[3].row_count);
    page->version++;
    CHECK(!page_check(page, sizeof(*page), &why) && strstr(why.text, "version"), "%s", why.text);
    page->version--;
    CHECK(!page_check(page, sizeof(*page) - 1, &why) && strstr(why.text, "bytes"), "%s", why.text);
    page->magic++;
    CHECK(!page_check(page, sizeof(*page), &why), "%s", why.text);
}

/* --- calls of ranks that have ended --- */

static struct left_rank ended[4];

static void ended_begin(void)
{
    memset(ended, 0, sizeof(ended));
    for (uint32_t i = 0; i < 4; i++)
        ended[i].me = (struct page_process){7, i};
}

static void calls(int rank, uint32_t comm, int turn, uint8_t collective, int root, uint32_t bytes)
{
    static uint32_t number;
    number++;
    ended[rank].events[number % PAGE_EVENTS] = (struct page_event){.number = number,
                                                                   .comm = comm,
                                                                   .rank = root,
                                                                   .tag = turn,
                                                                   .bytes = bytes,
                                                                   .kind = PAGE_EVENT_CALL,
                                                                   .collective = collective};
}

/* `wanted` null: nothing is said. */
static void differ(const char *what, const char *wanted)
{
    struct left_rank *list[] = {&ended[0], &ended[1], &ended[2], &ended[3]};
    const struct left left = {list, 4};
    char text[1024] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");
    CHECK(out && left_differ_show(out, &left), "%s", what);
    fclose(out);
    CHECK(wanted ? strstr(text, wanted) != NULL : !text[0], "%s: \"%s\"", what, text);
}

static void test_calls(void)
{
    ended_begin();
    for (int i = 0; i < 4; i++) {
        calls(i, 3, 0, PAGE_BARRIER, PAGE_ANY, 0);
        calls(i, 3, 1, PAGE_BCAST, 2, 8);
        calls(i, 4, 0, PAGE_ALLREDUCE, PAGE_ANY, (uint32_t) i / 2);
        ended[i].me.job += (uint32_t) i / 2; /* another job has the same numbers */
    }
    differ("all call the same", NULL);
    calls(0, 3, 2, PAGE_REDUCE, 0, 8);
    calls(1, 3, 2, PAGE_REDUCE, 1, 8);
    calls(0, 3, 3, PAGE_REDUCE, 0, 8);
    calls(1, 3, 3, PAGE_BARRIER, PAGE_ANY, 0);
    differ("another root", "communicator 3 differ first at number 3:\n"
                           "  rank 0 calls MPI_Reduce, 8 bytes, root 0\n"
                           "  rank 1 calls MPI_Reduce, 8 bytes, root 1\n");
    calls(0, 3, 0, PAGE_BARRIER, PAGE_ANY, 0);
    differ("a later communicator with this number", NULL);
    ended_begin();
    for (int i = 0; i < 4; i++)
        calls(i, 5, 0, PAGE_ALLGATHER, PAGE_ANY, i == 2 ? 16 : 8);
    differ("another length", "  rank 0 and 2 more call MPI_Allgather, 8 bytes\n"
                             "  rank 2 calls MPI_Allgather, 16 bytes\n");
}

static void test_events_are_shown(void)
{
    static const struct {
        struct page_event event;
        const char *line;
    } of[] = {{{.kind = PAGE_EVENT_SENT, .rank = 2, .tag = 5, .bytes = 9},
               "has sent to 2, tag 5, communicator 0, 9 bytes\n"},
              {{.kind = PAGE_EVENT_WAIT, .tag = PAGE_WAITALL}, "waits in MPI_Waitall\n"},
              {{.kind = PAGE_EVENT_WAIT, .tag = -1}, "waits in MPI\n"},
              {{.kind = PAGE_EVENT_MATCH, .rank = 3, .tag = 4, .bytes = 9},
               "has a receive for a message of rank 3 of the job, tag 4, 9 bytes\n"},
              {{.kind = PAGE_EVENT_LANE, .rank = 3, .tag = 1, .first = PAGE_LANE_WORSE},
               "lane 1 to rank 3 of the job has become worse\n"},
              {{.kind = PAGE_EVENT_LANE, .rank = 3, .tag = -1, .first = PAGE_PEER_SUSPECTED},
               "  rank 3 of the job is asked for signs of life\n"}};
    struct left_rank *list[] = {&ended[0]};
    const struct left left = {list, 1};
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        char text[1024] = "";
        ended_begin();
        ended[0].events[1] = of[i].event;
        ended[0].events[1].number = 1;
        FILE *out = fmemopen(text, sizeof(text), "w");
        CHECK(out && left_show(out, &left, 10), "event %zu", i);
        fclose(out);
        CHECK(strstr(text, of[i].line), "event %zu: %s", i, text);
    }
}

int main(void)
{
    test_calls();
    test_events_are_shown();
    test_messages();
    test_waits();
    test_many();
    test_busy();
    test_healthy();
    test_bounds();
    ranks_free(&ranks);
    return check_end();
}
