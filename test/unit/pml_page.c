/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of this process: found and read as multilane-top does, closed to all other writers; and
 * the waits in it begin and end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own_page.h"
#include "request/request.h"
#include "test/unit/check.h"
#include "tools/top/ask.h"
#include "tools/top/find.h"

/* What report/wait_rows.c looks up in a job. */
static void rows_fill(const struct wait_story *story, struct page_wait *to)
{
    to->row_count = to->outstanding = (uint32_t) story->count;
}

static int fd_of(const char *name)
{
    char path[64], target[128];
    for (int fd = 0; fd < 64; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        if (length > 0 && (target[length] = '\0', strstr(target, name)))
            return fd;
    }
    return -1;
}

static void test_seals(void)
{
    char path[64];
    int fd = fd_of(PAGE_FILE_NAME);
    CHECK(fd >= 0, "no descriptor of the page");
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC, "a program that this one starts has it");
    CHECK(ftruncate(fd, 0) != 0, "it shrinks");
    CHECK(ftruncate(fd, 1 << 20) != 0, "it grows");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int other = open(path, O_RDWR);
    CHECK(other < 0 || pwrite(other, "x", 1, 0) != 1 ||
              !(fcntl(fd, F_GET_SEALS) & 0x0010 /* F_SEAL_FUTURE_WRITE */),
          "another process can write to it");
    if (other >= 0)
        close(other);
}

static uint64_t asked(void)
{
    own_page_drain_read();
    return own_page_drain();
}

/* The word that its user alone writes: found by its name, and changed bit by bit. */
static void test_drain(void)
{
    struct stat status;
    int fd = fd_of(DRAIN_FILE_NAME);
    CHECK(fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & 0777) == 0600, "no descriptor");
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC, "a program that this one starts has it");
    CHECK(asked() == 0, "nothing is asked");
    CHECK(drain_change((int) getpid(), 6, true) && asked() == 6, "two lanes");
    CHECK(drain_change((int) getpid(), 2, false) && asked() == 4, "one is back");
    CHECK(!drain_change((int) getpid() + 100000000, 1, true), "there is no such process");
    CHECK(ftruncate(fd, 3) == 0 && asked() == 0 && ftruncate(fd, 1 << 20) == 0 && asked() == 4,
          "another length");
    CHECK(drain_change((int) getpid(), 4, false) && asked() == 0, "all are back");
}

static struct sample sample;

static enum page_found look(void)
{
    struct error_text why;
    return sample_read((int) getpid(), &sample, &why);
}

static void page_publish(struct wait_story *story)
{
    own_page_change();
    wait_story_describe(story, 5000, &own_page->waits[own_page->wait_count++]);
    story->published = true;
    own_page_changed();
}

static void test_waits(bool threads)
{
    struct wait_story outer, inner;
    opal_set_using_threads(threads);
    wait_story_begin(&outer, PAGE_WAITALL, 3, NULL);
    wait_story_begin(&inner, PAGE_RECV, 1, NULL);
    CHECK(wait_stories.first == &inner && inner.next == &outer, "the list, threads %d", threads);
    page_publish(&outer);
    page_publish(&inner);
    CHECK(look() == PAGE_IS_READ, "threads %d", threads);
    CHECK(sample.page.wait_count == 2 && sample.page.waits[0].call == PAGE_WAITALL &&
              sample.page.waits[0].outstanding == 3 && sample.page.waits[1].call == PAGE_RECV &&
              sample.page.waits[1].number == sample.page.waits[0].number + 1,
          "%u waits, threads %d", sample.page.wait_count, threads);
    if (threads) { /* another thread's may end first */
        wait_story_end(&outer);
        CHECK(wait_stories.first == &inner && !inner.next, "the older one has left the list");
        wait_story_end(&inner);
    } else {
        wait_story_end(&inner);
        wait_story_end(&outer);
    }
    CHECK(look() == PAGE_IS_READ && sample.page.wait_count == 0, "%u waits are left",
          sample.page.wait_count);
    CHECK(!wait_stories.first && sample.page.sequence % 2 == 0, "the list is not empty");
    opal_set_using_threads(false);
}

/* A child has the descriptor, and is no rank. */
static void test_child(void)
{
    struct error_text why;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    CHECK(sample_read((int) child, &sample, &why) == PAGE_NONE, "a child counts as a rank");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(sample_read((int) child, &sample, &why) == PAGE_GONE, "a process that has ended");
}

/* In the middle of a change, where its owner was stopped: what is there is read, and checked. */
static void test_torn(void)
{
    own_page_change();
    own_page->wait_count = 1000;
    CHECK(look() == PAGE_IS_READ && sample.page.wait_count == PAGE_WAITS, "%u",
          sample.page.wait_count);
    own_page->wait_count = 0;
    own_page_changed();
    own_page->version++;
    CHECK(look() == PAGE_REFUSED, "a page of another version");
    own_page->version--;
}

/* The program is in another folder at its end. */
static void test_file(void)
{
    char folder[] = "/tmp/multilane-page-XXXXXX";
    const char *why;
    CHECK(mkdtemp(folder) && chdir("/tmp") == 0, "%s", folder);
    CHECK(own_page_open(strrchr(folder, '/') + 1, (struct page_process){1, 2}, &why) && !why, "%s",
          why ? why : "");
    CHECK(chdir("/") == 0 && rmdir(folder) != 0, "there is no file");
    own_page_close();
    CHECK(rmdir(folder) == 0, "its file is still there");
}

int main(void)
{
    const char *why;
    CHECK(own_page_open("", (struct page_process){1, 2}, &why) && !why, "%s", why ? why : "");
    wait_stories_init(rows_fill);
    own_page->pid = (int32_t) getpid();
    test_seals();
    test_drain();
    test_waits(false);
    test_waits(true);
    test_child();
    test_torn();
    own_page_close();
    CHECK(look() == PAGE_NONE, "the page is closed");
    wait_stories_fini();
    test_file();
    return check_end();
}
