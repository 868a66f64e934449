/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for the registration of dmabufs, on machines whose RDMA device has none: for tests,
 * never for figures. To be preloaded, beside the stand-in for libcuda.
 *
 * What that one gives as a dmabuf is a file whose position says where the range begins. It is
 * mapped at an address of its own and registered there under the device's address, so that the RDMA
 * device really reads and writes the bytes of device memory, which the processor cannot touch. The
 * short reads of such a region, by which Multilane flushes it, are counted.
 *
 * MULTILANE_FAKE_VERBS is one word: register-fails (no dmabuf is taken), or flush-fails (those
 * reads end in an error). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

#define REGIONS     1024
#define FLUSH_BYTES 8

static struct region {
    struct ibv_mr *mr;
    char *mapping;
    uint64_t start;
    size_t size;
} regions[REGIONS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the regions and the next line */
static int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad);
static long registrations, flushes; /* atomic */

static bool is_set(const char *word)
{
    const char *given = getenv("MULTILANE_FAKE_VERBS");
    return given && strcmp(given, word) == 0;
}

/* For tests, which look whether device memory was reached directly, and flushed. */
API long multilane_standin_registrations(void);
API long multilane_standin_flushes(void);

API long multilane_standin_registrations(void)
{
    return __atomic_load_n(&registrations, __ATOMIC_RELAXED);
}

API long multilane_standin_flushes(void)
{
    return __atomic_load_n(&flushes, __ATOMIC_RELAXED);
}

/* --- flushes ------------------------------------------------------------------------------------
 */

/* A read of a few bytes of a region of this process. */
static bool is_flush(const struct ibv_send_wr *request)
{
    uint64_t address = request->wr.rdma.remote_addr;
    bool found = false;
    if (request->opcode != IBV_WR_RDMA_READ || request->num_sge != 1 ||
        request->sg_list->length == 0 || request->sg_list->length > FLUSH_BYTES)
        return false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < REGIONS && !found; i++)
        found = regions[i].mr && regions[i].mr->rkey == request->wr.rdma.rkey &&
                address >= regions[i].start &&
                address + request->sg_list->length <= regions[i].start + regions[i].size;
    pthread_mutex_unlock(&lock);
    return found;
}

static int post_send_seen(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    if (is_flush(request)) {
        __atomic_add_fetch(&flushes, 1, __ATOMIC_RELAXED);
        if (is_set("flush-fails"))
            request->wr.rdma.rkey ^= 0xff;
    }
    return post_send(qp, request, bad);
}

/* With the lock held. */
static void post_send_watch(struct ibv_context *context)
{
    if (context->ops.post_send == post_send_seen)
        return;
    post_send = context->ops.post_send;
    context->ops.post_send = post_send_seen;
}

/* --- registration -------------------------------------------------------------------------------
 */

/* With the lock held. */
static struct region *region_of(const struct ibv_mr *mr)
{
    for (int i = 0; i < REGIONS; i++)
        if (regions[i].mr == mr)
            return &regions[i];
    return NULL;
}

API struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                     uint64_t address, int fd, int access)
{
    struct region region = {.start = address, .size = length};
    off_t start = lseek(fd, 0, SEEK_CUR);
    if (start < 0) /* as of a descriptor that is none */
        return NULL;
    if (is_set("register-fails")) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    region.mapping =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start + (off_t) offset);
    if (region.mapping == MAP_FAILED)
        return NULL;
    region.mr = ibv_reg_mr_iova(pd, region.mapping, length, address, (unsigned) access);
    if (!region.mr) {
        munmap(region.mapping, length);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct region *place = region_of(NULL);
    if (!place)
        abort(); /* a test that holds so many is another one */
    *place = region;
    post_send_watch(pd->context);
    pthread_mutex_unlock(&lock);
    __atomic_add_fetch(&registrations, 1, __ATOMIC_RELAXED);
    return region.mr;
}

API int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct region region = {.mr = NULL};
    int (*real)(struct ibv_mr * mr);
    void *symbol = dlsym(RTLD_NEXT, "ibv_dereg_mr");
    memcpy(&real, &symbol, sizeof(real));
    pthread_mutex_lock(&lock);
    struct region *place = region_of(mr);
    if (place) {
        region = *place;
        place->mr = NULL;
    }
    pthread_mutex_unlock(&lock);
    int status = real(mr);
    if (region.mr)
        munmap(region.mapping, region.size);
    return status;
}
