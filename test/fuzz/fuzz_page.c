/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes at all as pages: refused with a sentence, or every report of multilane-top can be made
 * of them.
 *
 * Built with -DFUZZ_WITH_LIBFUZZER -fsanitize=fuzzer it is driven by libFuzzer. Otherwise it
 * changes pages at random itself, always the same way. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/report/page_take.h"
#include "test/unit/check.h"
#include "tools/top/left.h"
#include "tools/top/show.h"

#define ROUNDS 1500
#define RANKS  3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static FILE *nowhere;

static void report_all(const struct ranks *ranks)
{
    struct why why;
    struct view view = {.sort = SORT_SINCE, .columns = 80};
    if (!why_find(ranks, &why))
        abort();
    show_table(nowhere, ranks, &why, &view);
    show_waited(nowhere, ranks, &view);
    show_why(nowhere, ranks, &why);
    export_json(nowhere, ranks, &why, true);
    export_prometheus(nowhere, ranks, &why);
    why_free(&why);
}

/* The bytes are laid over the pages again and again, behind the three words that make a page. */
static bool page_make(struct page *page, const uint8_t *data, size_t length, size_t from)
{
    struct error_text why;
    size_t head = offsetof(struct page, sequence);
    page->magic = PAGE_MAGIC;
    page->version = PAGE_VERSION;
    page->bytes = sizeof(*page);
    for (size_t i = head; i < sizeof(*page); i++)
        ((uint8_t *) page)[i] ^= data[(from + i) % length];
    if (page_check(page, sizeof(*page), &why))
        return true;
    if (!why.text[0] || strlen(why.text) >= sizeof(why.text))
        abort();
    return false;
}

/* The same as the file of a rank that has died. */
static void file_try(const uint8_t *data, size_t length)
{
    static struct page_file file;
    static int fd = -1;
    struct ranks ranks = {.list = NULL};
    struct left left = {.list = NULL};
    char path[64];
    struct error_text error = {""};
    size_t bytes = length % 8 ? sizeof(file) : length * 37 % sizeof(file);
    if (fd < 0)
        fd = memfd_create("file", MFD_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    (void) page_make(&file.page, data, length, 1);
    for (size_t i = 0; i < sizeof(file.events); i++)
        ((uint8_t *) file.events)[i] = data[i % length];
    for (uint32_t i = 0; i < PAGE_EVENTS && data[0] % 2;
         i++) /* else hardly one would be in its place */
        file.events[i].number = i + PAGE_EVENTS * data[i % length];
    if (ftruncate(fd, 0) != 0 || pwrite(fd, &file, bytes, 0) != (ssize_t) bytes)
        abort();
    if (left_load(path, &ranks, &left, &error) == (error.text[0] != '\0') ||
        !left_show(nowhere, &left, 1 + data[0] % 100u) || !left_differ_show(nowhere, &left))
        abort();
    if (ranks.count)
        report_all(&ranks);
    left_free(&left);
    ranks_free(&ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct ranks ranks = {.list = NULL};
    struct error_text why;
    struct page bare;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    if (!nowhere || length == 0)
        return 0;
    memset(&bare, 0, sizeof(bare));
    memcpy(&bare, data, length < sizeof(bare) ? length : sizeof(bare));
    (void) page_check(&bare, length, &why);
    for (int i = 0; i < RANKS; i++) {
        struct rank *rank = ranks_add(&ranks, i);
        if (!rank)
            return 0;
        page_make(&rank->first.page, data, length, (size_t) i);
        rank->second = rank->first;
        page_make(&rank->second.page, data, length, length / 2 + 1);
        rank->second.page.me.rank %= RANKS;
        rank->first.state = rank->second.state = "RSDTtZ"[data[0] % 6];
    }
    ranks_sort(&ranks);
    report_all(&ranks);
    ranks_free(&ranks);
    file_try(data, length);
    return 0;
}

#ifndef FUZZ_WITH_LIBFUZZER

/* Mostly zeros, so that counts are small and what they count is looked at. */
static void bytes_make(uint8_t *data, size_t length, uint64_t *state)
{
    uint64_t density = 1 + chance_below(state, 60);
    for (size_t i = 0; i < length; i++)
        data[i] = chance_below(state, density) ? 0 : (uint8_t) chance_next(state);
}

int main(void)
{
    static uint8_t data[sizeof(struct page)];
    uint64_t state = 4711;
    int rounds = check_is_long() ? 100 * ROUNDS : ROUNDS;
    for (int round = 0; round < rounds; round++) {
        size_t length = 1 + chance_below(&state, sizeof(data));
        bytes_make(data, length, &state);
        LLVMFuzzerTestOneInput(data, length);
    }
    printf("%d rounds\n", rounds);
    return 0;
}

#endif
