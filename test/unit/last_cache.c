/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache that processors share, from files as the kernel shows them, and the rings that fit it.
 */
#include "common/lane/last_cache.h"
#include "test/unit/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char top[64] = "/tmp/last_cache.XXXXXX";

static void folder_make(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST, "%s: %s", path, strerror(errno));
}

static void file_write(int index, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "cpu5/cache/index%d", index);
    folder_make(path);
    snprintf(path, sizeof(path), "%s/cpu5/cache/index%d/%s", top, index, name);
    FILE *file = fopen(path, "we");
    CHECK(file && fprintf(file, "%s\n", text) >= 0 && fclose(file) == 0, "%s: %s", path,
          strerror(errno));
}

static void expect(uint64_t bytes, uint32_t processors)
{
    struct last_cache cache = last_cache_find(top, 5);

    CHECK(cache.bytes == bytes && cache.processors == processors, "%" PRIu64 " bytes for %u",
          cache.bytes, cache.processors);
}

static void caches_are_found(void)
{
    if (!mkdtemp(top))
        exit(1);
    expect(0, 1);
    folder_make("cpu5");
    folder_make("cpu5/cache");
    file_write(0, "level", "1");
    file_write(0, "size", "32K");
    file_write(1, "level", "2");
    file_write(1, "size", "1024K");
    file_write(1, "shared_cpu_list", "5");
    expect(0, 1);
    file_write(2, "level", "3");
    expect(0, 1);
    file_write(2, "size", "large");
    expect(0, 1);
    file_write(2, "size", "32768K");
    expect(32 << 20, 1);
    file_write(2, "shared_cpu_list", "0-7,16-23");
    expect(32 << 20, 16);
    file_write(2, "shared_cpu_list", "5");
    expect(32 << 20, 1);
    file_write(2, "shared_cpu_list", "1,3,5-6");
    expect(32 << 20, 4);
    file_write(2, "shared_cpu_list", "7-2,nonsense");
    expect(32 << 20, 1);
    check_folder_remove(top);
}

static void rings_fit_into_half_of_it(void)
{
    static const struct {
        uint64_t cache;
        uint32_t sharing, processes;
        uint32_t bytes;
    } cases[] = {
        {0, 1, 2, 256 << 10},          {32 << 20, 16, 1, 4 << 20},  {32 << 20, 2, 2, 4 << 20},
        {8 << 20, 2, 2, 2 << 20},      {32 << 20, 16, 4, 1 << 20},  {32 << 20, 16, 8, 256 << 10},
        {32 << 20, 16, 64, 256 << 10}, {256 << 20, 64, 9, 1 << 20}, {1 << 20, 2, 2, 256 << 10}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct last_cache cache = {cases[i].cache, cases[i].sharing};
        struct ring_sizes sizes = last_cache_ring_sizes(&cache, cases[i].processes);

        CHECK(sizes.usual == RING_BYTES_USUAL && sizes.most == cases[i].bytes,
              "%u processes: %u to %u bytes", cases[i].processes, sizes.usual, sizes.most);
    }
}

static void processes_that_share_processors_have_small_rings(void)
{
    struct ring_sizes sizes = last_cache_ring_sizes_here(100000, true);

    CHECK(sizes.usual == RING_BYTES_CROWDED && sizes.most == RING_BYTES_USUAL, "%u to %u bytes",
          sizes.usual, sizes.most);
}

int main(void)
{
    caches_are_found();
    rings_fit_into_half_of_it();
    processes_that_share_processors_have_small_rings();
    return check_end();
}
