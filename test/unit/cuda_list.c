/* SPDX-License-Identifier: BSD-3-Clause */
/* A key of memory in several chunks: their keys are read from the owner's memory, here our own, and
 * forged ones are refused with a sentence. */
#include "btl/cuda/cuda.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/unit/check.h"

struct cuda_state cuda = {.handles_max = 8};

enum { CHUNKS = 3, SIZE = 100, AT = 5000 };

static cuda_key_t chunks[CHUNKS];

/* Of a message from the middle of the first chunk to the middle of the last. */
static cuda_key_t key_of(uint32_t count)
{
    for (uint32_t i = 0; i < CHUNKS; i++)
        chunks[i] = (cuda_key_t){.kind = i % 2 ? SHARE_FABRIC : SHARE_FD,
                                 .buffer_id = 1 + i,
                                 .start = AT + i * SIZE,
                                 .size = SIZE};
    return (cuda_key_t){.handle.list = {(int32_t) getpid(), count, (uintptr_t) chunks},
                        .kind = SHARE_LIST,
                        .start = AT + SIZE / 2,
                        .size = (CHUNKS - 1) * SIZE};
}

static void is_read(void)
{
    cuda_key_t key = key_of(CHUNKS);
    char why[160] = "";
    cuda_key_t *list = cuda_list_read(&key, why, sizeof(why));

    CHECK(list && list != chunks && memcmp(list, chunks, sizeof(chunks)) == 0, "%s", why);
    free(list);
    key.start = AT;
    key.size = CHUNKS * SIZE;
    list = cuda_list_read(&key, why, sizeof(why));
    CHECK(list, "all of the chunks: %s", why);
    free(list);
}

static void refused(const cuda_key_t *key, const char *what, const char *sentence)
{
    char why[160] = "";
    cuda_key_t *list = cuda_list_read(key, why, sizeof(why));

    CHECK(!list && strstr(why, sentence), "%s: %s", what, why);
    free(list);
}

static void counts_are_bounded(void)
{
    cuda_key_t key = key_of(0);

    refused(&key, "none", "in 0 chunks");
    key.handle.list.count = 9;
    refused(&key, "more than are kept open", "btl_cuda_handles_max is 8");
    key.handle.list.count = UINT32_MAX;
    refused(&key, "as many as can be", "btl_cuda_handles_max is 8");
}

static void chunks_follow_each_other(void)
{
    static const char sentence[] = "are not those of a message";
    cuda_key_t key = key_of(CHUNKS);

    chunks[1].start++;
    refused(&key, "a gap", sentence);
    chunks[1].start -= 2;
    refused(&key, "an overlap", sentence);
    key = key_of(CHUNKS);
    chunks[1].size = 0;
    chunks[2].start = chunks[1].start;
    refused(&key, "an empty one", sentence);
    key = key_of(CHUNKS);
    chunks[2].size = UINT64_MAX;
    refused(&key, "beyond all addresses", sentence);
    key = key_of(CHUNKS);
    chunks[1].kind = SHARE_LIST;
    refused(&key, "a list in a list", sentence);
    chunks[1].kind = SHARE_IPC;
    refused(&key, "memory of cudaMalloc", sentence);
}

static void chunks_hold_the_message(void)
{
    static const char sentence[] = "are not those of a message";
    cuda_key_t key = key_of(CHUNKS);

    key.start = AT - 1;
    refused(&key, "a message before them", sentence);
    key.start = AT + 1;
    key.size = CHUNKS * SIZE;
    refused(&key, "one that ends behind them", sentence);
    key.size = UINT64_MAX;
    refused(&key, "one of all addresses", sentence);
    key.start = AT + CHUNKS * SIZE + 1;
    key.size = 1;
    refused(&key, "one behind them", sentence);
}

static void memory_is_there(void)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    cuda_key_t key = key_of(CHUNKS);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *place = pages + page - sizeof(chunks) + 1;

    CHECK(pages != MAP_FAILED, "no memory");
    munmap(pages + page, page);
    memcpy(place, chunks, sizeof(chunks) - 1);
    key.handle.list.address = (uintptr_t) place;
    refused(&key, "the last byte is not there", "does not let us read");
    key.handle.list.address = 8;
    refused(&key, "nothing is there", "does not let us read");
    key.handle.list.pid = -1;
    refused(&key, "there is no such process", "does not let us read");
    munmap(pages, page);
}

int main(void)
{
    is_read();
    counts_are_bounded();
    chunks_follow_each_other();
    chunks_hold_the_message();
    memory_is_there();
    return check_end();
}
