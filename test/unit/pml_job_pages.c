/* SPDX-License-Identifier: BSD-3-Clause */
/* The pages of a job, brought together by one process for a tool: what is asked and answered over
 * lanes, and what of hostile answers becomes a file. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own_page.h"
#include "job_standin.h"
#include "report/report.h"
#include "tools/top/ask.h"

#define BLOCKS ((sizeof(struct page) + WIRE_PAGE_BYTES - 1) / WIRE_PAGE_BYTES)

static char folder[64];
static unsigned char blocks[BLOCKS * WIRE_PAGE_BYTES];

static void begin(void)
{
    job_begin(1 << 24, 0); /* it has a page, as in any job */
    job_has_room = true;
    job_forget();
    multilane.bad_headers = 0;
    standin_expects_failures = true;
    own_page->me = (struct page_process){multilane.me.jobid, 0};
    own_page->job_size = JOB_RANKS;
    job_pages_begin(); /* as module_add_procs does */
    snprintf(folder, sizeof(folder), "job_pages.XXXXXX");
    CHECK(mkdtemp(folder) != NULL, "no folder");
}

static void end(void)
{
    job_end();
    check_folder_remove(folder);
}

/* As multilane-top does; the number of the question. */
static uint32_t ask(const char *path)
{
    int question = pages_ask((int) getpid(), path);
    CHECK(question >= 0, "it cannot be asked");
    CHECK(pages_ask((int) getpid(), path) < 0 && strstr(ask_error(errno), "another"),
          "two ask at once: %s", ask_error(errno));
    close(question);
    own_page_drain_read();
    job_pages_look();
    return own_page_asks();
}

static bool file_read(int rank, struct page *page)
{
    char path[128];
    struct stat status;
    snprintf(path, sizeof(path), "%s/" PAGE_FILE_NAME ".%u.%d", folder, multilane.me.jobid, rank);
    int fd = open(path, O_RDONLY);
    bool is_good = fd >= 0 && read(fd, page, sizeof(*page)) == (ssize_t) sizeof(*page) &&
                   fstat(fd, &status) == 0 && status.st_size == (off_t) sizeof(struct page_file) &&
                   (status.st_mode & 0777) == 0600;
    if (fd >= 0)
        close(fd);
    return is_good;
}

static bool has_file(int rank)
{
    static struct page page;
    return file_read(rank, &page);
}

/* A page with something in its first, in a middle and in its last block. */
static struct page page_of(int rank)
{
    struct page page = {.magic = PAGE_MAGIC, .job_size = JOB_RANKS};
    page.me = (struct page_process){multilane.me.jobid, (uint32_t) rank};
    page.peers[PAGE_PEERS / 2].sent = 7;
    page.unexpected[PAGE_MESSAGES - 1].bytes = 9;
    return page;
}

static void block_send(int from, int rank, uint32_t number, unsigned block, unsigned count)
{
    struct wire_page part = {number, (uint32_t) rank, (uint16_t) block, (uint16_t) count, {0}};
    if (block < BLOCKS)
        memcpy(part.bytes, blocks + block * WIRE_PAGE_BYTES, WIRE_PAGE_BYTES);
    job_control(from, 0, WIRE_PAGE, &part, sizeof(part), NULL, 0);
}

static bool is_used(unsigned block)
{
    static const unsigned char none[WIRE_PAGE_BYTES];
    return memcmp(blocks + block * WIRE_PAGE_BYTES, none, WIRE_PAGE_BYTES) != 0;
}

static unsigned blocks_take(const struct page *page)
{
    unsigned used = 0;
    memset(blocks, 0, sizeof(blocks));
    memcpy(blocks, page, sizeof(*page));
    for (unsigned i = 0; i < BLOCKS; i++)
        used += is_used(i);
    return used;
}

/* All blocks in use but the last, some twice; and then that. */
static void page_send(int from, int rank, uint32_t number, const struct page *page)
{
    unsigned used = blocks_take(page), last = BLOCKS;
    while (!is_used(--last))
        ;
    for (unsigned i = 0; i < last; i++)
        for (unsigned times = 0; is_used(i) && times < 1 + i % 2; times++)
            block_send(from, rank, number, i, used);
    CHECK(!has_file(rank), "a file before the page is whole");
    block_send(from, rank, number, last, used);
}

static void pages_become_files(void)
{
    struct page got, sent = page_of(1);
    begin();
    CHECK(!has_file(0) && job_count(1, WIRE_PAGE_ASK) == 0, "something is done unasked");
    uint32_t number = ask(folder);
    const struct wire_page_ask *asked = job_last(2, WIRE_PAGE_ASK);
    CHECK(has_file(0), "its own page is not there");
    CHECK(job_count(1, WIRE_PAGE_ASK) == 1 && job_count(2, WIRE_PAGE_ASK) == 1 && asked &&
              asked->number == number,
          "the others are not asked");
    page_send(1, 1, number, &sent);
    CHECK(file_read(1, &got) && memcmp(&got, &sent, sizeof(got)) == 0, "another page");
    for (int i = 0; i < 3; i++)
        job_pages_look();
    CHECK(job_count(1, WIRE_PAGE_ASK) == 1, "asked again");
    CHECK(ask(folder) == number + 1 && job_count(1, WIRE_PAGE_ASK) == 2, "not asked again");
    CHECK(multilane.bad_headers == 0, "%u bad headers", (unsigned) multilane.bad_headers);
    end();
}

/* Rank 2 looks for messages, rank 1 computes, and answers after all while rank 2 has for it. */
static void another_answers_for_one_that_computes(void)
{
    struct page got, sent = page_of(1), late = page_of(1);
    begin();
    uint32_t number = ask(folder);
    unsigned used = blocks_take(&sent);
    late.peers[0].sent = 3;
    sent.state = late.state = 'R';
    block_send(2, 1, number, 0, used);
    unsigned of_late = blocks_take(&late);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (is_used(i))
            block_send(1, 1, number, i, of_late);
    CHECK(!has_file(1), "one page of two");
    page_send(2, 1, number, &sent);
    CHECK(file_read(1, &got) && memcmp(&got, &sent, sizeof(got)) == 0, "another page");
    page_send(2, JOB_RANKS - 1, number, &sent);
    block_send(2, JOB_RANKS, number, 0, used);
    CHECK(!has_file(JOB_RANKS), "a rank that there is not");
    end();
}

static void hostile_answers_become_none(void)
{
    struct page other = page_of(2), own = page_of(1);
    begin();
    unsigned used = blocks_take(&own);
    block_send(1, 1, 0, 0, used); /* nothing was asked */
    uint32_t number = ask(folder);
    page_send(1, 1, number, &other);
    CHECK(!has_file(1) && !has_file(2), "a page of another rank");
    page_send(1, 1, number + 1, &own);
    CHECK(!has_file(1), "an answer to another question");
    CHECK(multilane.bad_headers == 0, "an answer that comes late is no fault");
    blocks_take(&own);
    block_send(1, 1, number, BLOCKS, used);
    block_send(1, 1, number, UINT16_MAX, used);
    block_send(1, 1, number, 0, BLOCKS + 1);
    CHECK(multilane.bad_headers == 3, "%u of 3 were refused", (unsigned) multilane.bad_headers);
    end();
}

static void folders_of_others_get_nothing(void)
{
    begin();
    CHECK(chmod(folder, 0770) == 0, "no change");
    ask(folder);
    CHECK(!has_file(0) && job_count(1, WIRE_PAGE_ASK) == 0, "others may write there");
    CHECK(chmod(folder, 0700) == 0, "no change");
    ask("no-such-folder");
    CHECK(!has_file(0) && job_count(1, WIRE_PAGE_ASK) == 0, "there is none");
    ask(folder);
    CHECK(has_file(0) && job_count(1, WIRE_PAGE_ASK) == 1, "its own folder");
    end();
}

/* In as many blocks as are in use; of one asker the last question counts. */
static void a_page_is_sent_to_who_asks(void)
{
    struct wire_page_ask asked = {.number = 77};
    begin();
    own_page->peers[PAGE_PEERS - 1].sent = 5;
    unsigned used = blocks_take(own_page);
    job_control(1, 0, WIRE_PAGE_ASK, &asked, sizeof(asked), NULL, 0);
    CHECK(job_count(1, WIRE_PAGE) == 0, "sent from the callback");
    job_pages_look();
    const struct wire_page *part = job_last(1, WIRE_PAGE);
    CHECK(job_count(1, WIRE_PAGE) == used && part && part->number == 77 && part->blocks == used &&
              memcmp(part->bytes, blocks + part->block * WIRE_PAGE_BYTES, WIRE_PAGE_BYTES) == 0,
          "%u of %u blocks", job_count(1, WIRE_PAGE), used);
    job_forget();
    for (asked.number = 100; asked.number < 120; asked.number++)
        job_control(2, 0, WIRE_PAGE_ASK, &asked, sizeof(asked), NULL, 0);
    job_control(1, 0, WIRE_PAGE_ASK, &asked, sizeof(asked), NULL, 0);
    job_pages_look();
    part = job_last(2, WIRE_PAGE);
    CHECK(job_count(2, WIRE_PAGE) == used && part && part->number == 119,
          "%u blocks for 20 questions", job_count(2, WIRE_PAGE));
    CHECK(job_count(1, WIRE_PAGE) == used, "%u blocks for another", job_count(1, WIRE_PAGE));
    end();
}

/* A peer that is listed, and has no lane; and all, once lanes go. */
static void who_has_no_lane_is_left_out(void)
{
    struct wire_page_ask asked = {.number = 5};
    begin();
    job_control(1, 0, WIRE_PAGE_ASK, &asked, sizeof(asked), NULL, 0);
    peer_reach(job_peer(1), false);
    atomic_store_explicit(&job_peer(1)->lost, true, memory_order_relaxed);
    ask(folder);
    CHECK(job_count(1, WIRE_PAGE_ASK) == 0 && job_count(1, WIRE_PAGE) == 0, "it is sent to");
    CHECK(job_count(2, WIRE_PAGE_ASK) == 1, "the other is not asked");
    atomic_store_explicit(&job_peer(1)->lost, false, memory_order_relaxed);
    peer_reach(job_peer(1), true);
    job_pages_end();
    job_control(1, 0, WIRE_PAGE_ASK, &asked, sizeof(asked), NULL, 0);
    ask(folder);
    CHECK(job_count(2, WIRE_PAGE_ASK) == 1 && job_count(1, WIRE_PAGE) == 0, "at the end");
    job_pages_begin();
    job_pages_look();
    CHECK(job_count(1, WIRE_PAGE) == 0, "a question of the session before is answered");
    end();
}

/* The file of a page would end the process by a signal. */
static void a_small_limit_of_files_holds(void)
{
    struct rlimit before, small;
    begin();
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0, "no limit");
    small = (struct rlimit){1024, before.rlim_max};
    int question = pages_ask((int) getpid(), folder);
    close(question);
    own_page_drain_read();
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0, "no limit");
    job_pages_look();
    (void) setrlimit(RLIMIT_FSIZE, &before);
    CHECK(!has_file(0) && job_count(1, WIRE_PAGE_ASK) == 0, "a file above the limit");
    end();
}

int main(void)
{
    pages_become_files();
    another_answers_for_one_that_computes();
    hostile_answers_become_none();
    folders_of_others_get_nothing();
    a_page_is_sent_to_who_asks();
    who_has_no_lane_is_left_out();
    a_small_limit_of_files_holds();
    return check_end();
}
