/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations of device memory by dmabuf, and when they are released.
 *
 * Open MPI's cache of registrations notices when memory of the host is freed, but not cuMemFree.
 * Here every use asks the driver for the number of the allocation at the address. The driver never
 * uses a number again, so a registration of freed memory is never taken for one of new memory. */
#include "btl/verbs/dmabuf.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/memory/copier.h"

/* The flush reads what was written; and memory for sending and receiving is registered once. */
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* --- what there is --- */

static struct ibv_mr *region_register(struct ibv_pd *pd, driver_ptr start, size_t size, int fd)
{
    return ibv_reg_dmabuf_mr(pd, 0, size, start, fd, ACCESS);
}

/* With a wrong descriptor, a device that can do it returns EBADF. */
static bool device_registers(struct ibv_pd *pd)
{
    struct ibv_mr *mr = region_register(pd, 0, (size_t) sysconf(_SC_PAGESIZE), -1);

    if (mr)
        ibv_dereg_mr(mr);
    return mr || errno == EBADF;
}

/* A driver that is not started shows no device. */
static bool driver_gives(void)
{
    int count = 0, can = 1;

    if (driver.device_count(&count) != DRIVER_SUCCESS)
        return true;
    for (int device = 0; device < count; device++)
        if (driver.device_attribute(&can, DRIVER_DEVICE_DMA_BUF, device) == DRIVER_SUCCESS && can)
            return true;
    return false;
}

bool verbs_dmabuf_is_supported(struct ibv_pd *pd, struct error_text *why)
{
    const char *missing = NULL;

    if (!driver_load())
        missing = driver_why();
    else if (!driver.range_handle || !driver.pointer_set || !driver.device_attribute)
        missing = "the CUDA driver has no cuMemGetHandleForAddressRange, which came with 11.7";
    else if (!driver_gives())
        missing = "the CUDA driver gives no dmabuf of its devices' memory (the open kernel modules "
                  "do)";
    else if (!device_registers(pd))
        missing = "the RDMA device, or the kernel, registers no dmabuf";
    return !missing || fail_with(why, "%s", missing);
}

/* --- one region --- */

static driver_ptr page_down(driver_ptr address)
{
    return address & ~((driver_ptr) sysconf(_SC_PAGESIZE) - 1);
}

static driver_ptr page_up(driver_ptr address)
{
    return page_down(address + (driver_ptr) sysconf(_SC_PAGESIZE) - 1);
}

/* Whether the driver did one step; if not, why. */
static bool step_done(driver_result result, const char *what, struct error_text *why)
{
    char words[160];

    if (result == DRIVER_SUCCESS)
        return true;
    return fail_with(why, "%s: the CUDA driver says %s", what,
                     driver_words(result, words, sizeof(words)));
}

/* In the memory's context. The file descriptor of whole pages; -1 and why. Copies to this memory
 * become synchronous first: otherwise the driver lets some of them return before the data is
 * visible to other devices. */
static int range_export(const struct memory *memory, driver_ptr start, driver_ptr end,
                        struct error_text *why)
{
    const unsigned yes = 1;
    int fd = -1, can = 0;

    if (!step_done(driver.device_attribute(&can, DRIVER_DEVICE_DMA_BUF, memory->device),
                   "the device cannot be asked", why))
        return -1;
    if (!can) {
        fail_with(why, "the CUDA driver gives no dmabuf of the memory of device %d",
                  memory->device);
        return -1;
    }
    if (!step_done(driver.pointer_set(&yes, DRIVER_POINTER_SYNC_COPIES, memory->start),
                   "copies to it cannot be made synchronous", why) ||
        !step_done(
            driver.range_handle(&fd, start, (size_t) (end - start), DRIVER_RANGE_DMA_BUF_FD, 0),
            "no dmabuf", why))
        return -1;
    return fd;
}

static struct ibv_mr *range_register(struct ibv_pd *pd, const struct memory *memory,
                                     driver_ptr start, driver_ptr end, struct error_text *why)
{
    if (!step_done(context_enter(memory->context), "its context cannot be used", why))
        return NULL;
    int fd = range_export(memory, start, end, why);
    context_leave();
    if (fd < 0)
        return NULL;
    struct ibv_mr *mr = region_register(pd, start, (size_t) (end - start), fd);
    if (!mr)
        fail_with(why, "the RDMA device does not register its dmabuf: %s", strerror(errno));
    close(fd); /* the registration holds it */
    return mr;
}

/* --- the cache --- */

void verbs_dmabuf_open(struct dmabuf_cache *cache, struct ibv_pd *pd)
{
    memset(cache, 0, sizeof(*cache));
    cache->pd = pd;
    pthread_mutex_init(&cache->lock, NULL);
}

static void region_forget(struct dmabuf_region *region)
{
    if (region->mr)
        ibv_dereg_mr(region->mr);
    *region = (struct dmabuf_region){.mr = NULL};
}

void verbs_dmabuf_close(struct dmabuf_cache *cache)
{
    if (!cache->pd)
        return;
    for (uint32_t i = 0; i < cache->tried; i++)
        region_forget(&cache->regions[i]);
    pthread_mutex_destroy(&cache->lock);
    cache->pd = NULL;
}

/* Under the lock, as all below. */
static struct dmabuf_region *region_find(struct dmabuf_cache *cache, const struct memory *memory,
                                         driver_ptr first, driver_ptr end)
{
    for (uint32_t i = 0; i < cache->tried; i++) {
        struct dmabuf_region *region = &cache->regions[i];

        if (region->mr && region->buffer_id == memory->buffer_id && region->start <= first &&
            region->end >= end)
            return region;
    }
    return NULL;
}

static bool is_freed(const struct dmabuf_region *region)
{
    struct memory now;

    memory_ask((const void *) (uintptr_t) region->asked, &now);
    return now.kind != MEMORY_DEVICE || now.buffer_id != region->buffer_id;
}

/* Releases unused registrations: all of them, or those of freed memory. */
static bool regions_forget(struct dmabuf_cache *cache, bool all)
{
    bool any = false;

    for (uint32_t i = 0; i < cache->tried; i++) {
        struct dmabuf_region *region = &cache->regions[i];

        if (region->mr && region->users == 0 && (all || is_freed(region))) {
            region_forget(region);
            any = true;
        }
    }
    return any;
}

/* A free entry, if necessary that of the registration unused for the longest time. NULL: all are in
 * use. */
static struct dmabuf_region *region_place(struct dmabuf_cache *cache)
{
    struct dmabuf_region *oldest = NULL;

    for (uint32_t i = 0; i < cache->tried; i++) {
        struct dmabuf_region *region = &cache->regions[i];

        if (!region->mr)
            return region;
        if (region->users == 0 && (!oldest || region->last_used < oldest->last_used))
            oldest = region;
    }
    if (cache->tried < DMABUF_REGIONS)
        return &cache->regions[cache->tried++];
    if (oldest)
        region_forget(oldest);
    return oldest;
}

/* The whole allocation, so that messages from all over it need one registration; or, where the
 * device or the driver takes no such piece, the pages of the message, as `region` has them. */
static struct ibv_mr *region_register_most(struct dmabuf_cache *cache, const struct memory *memory,
                                           struct dmabuf_region *region, struct error_text *why)
{
    driver_ptr start = page_down(memory->start), end = page_up(memory->start + memory->size);
    bool is_more = start < region->start || end > region->end;
    struct ibv_mr *mr = is_more ? range_register(cache->pd, memory, start, end, why) : NULL;

    if (!mr)
        return range_register(cache->pd, memory, region->start, region->end, why);
    region->start = start;
    region->end = end;
    return mr;
}

static struct dmabuf_region *region_make(struct dmabuf_cache *cache, const struct memory *memory,
                                         driver_ptr first, driver_ptr end, struct error_text *why)
{
    (void) regions_forget(cache, false);
    struct dmabuf_region *region = region_place(cache);
    if (!region) {
        fail_with(why, "%d pieces are registered already, and in use", DMABUF_REGIONS);
        return NULL;
    }
    struct dmabuf_region made = {.buffer_id = memory->buffer_id,
                                 .start = page_down(first),
                                 .end = page_up(end),
                                 .asked = first};
    made.mr = region_register_most(cache, memory, &made, why);
    if (!made.mr && regions_forget(cache, true)) /* the resources they held may be missing here */
        made.mr = region_register_most(cache, memory, &made, why);
    *region = made;
    return !made.mr ? NULL : region;
}

struct dmabuf_region *verbs_dmabuf_register(struct dmabuf_cache *cache, const void *base,
                                            size_t size, struct error_text *why)
{
    driver_ptr first = (driver_ptr) (uintptr_t) base, end = first + size;
    struct memory memory;

    memory_ask(base, &memory);
    if (memory.kind != MEMORY_DEVICE || !memory.context) {
        fail_with(why, "it is managed memory, or memory of no one context");
        return NULL;
    }
    if (first < memory.start || end > memory.start + memory.size) {
        fail_with(why, "the message ends outside of the allocation that it begins in");
        return NULL;
    }
    pthread_mutex_lock(&cache->lock);
    struct dmabuf_region *region = region_find(cache, &memory, first, end);
    if (!region)
        region = region_make(cache, &memory, first, end, why);
    if (region) {
        region->users++;
        region->last_used = ++cache->clock;
    }
    pthread_mutex_unlock(&cache->lock);
    return region;
}

void verbs_dmabuf_release(struct dmabuf_cache *cache, struct dmabuf_region *region)
{
    pthread_mutex_lock(&cache->lock);
    region->users--;
    pthread_mutex_unlock(&cache->lock);
}
