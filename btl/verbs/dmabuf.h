/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory that an RDMA device reads and writes itself (GPUDirect): the driver exports a range
 * of it as a dmabuf, which is registered. Registrations are kept until the memory is freed. */
#ifndef MULTILANE_VERBS_DMABUF_H
#define MULTILANE_VERBS_DMABUF_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/driver.h"
#include "common/model/error.h"

/* Registered ranges of one device at most, in use or kept: each holds on to its pages, also when
 * the program has freed them. */
#define DMABUF_REGIONS 256

struct dmabuf_region {
    struct ibv_mr *mr;  /* NULL: the entry is free */
    uint64_t buffer_id; /* the driver's, never used again: of the allocation */
    driver_ptr start, end;
    driver_ptr asked; /* an address of the allocation in it */
    uint32_t users;
    uint64_t last_used; /* by the cache's clock */
};

struct dmabuf_cache {
    struct ibv_pd *pd;
    pthread_mutex_t lock; /* guards all below */
    uint64_t clock;
    uint32_t tried; /* entries from here on were never used */
    struct dmabuf_region regions[DMABUF_REGIONS];
};

/* Can this RDMA device register a dmabuf, and the CUDA driver make one? A driver that the program
 * has not started yet counts as able; each registration asks again. If not, `why` says what is
 * missing, as the end of a sentence. */
bool verbs_dmabuf_is_supported(struct ibv_pd *pd, struct error_text *why);

void verbs_dmabuf_open(struct dmabuf_cache *cache, struct ibv_pd *pd);
/* No registration is in use. */
void verbs_dmabuf_close(struct dmabuf_cache *cache);

/* A registration of these bytes of device memory, for put, get and flush; its keys are used with
 * the addresses of the memory. NULL and why: it failed, and the bytes go another way. */
struct dmabuf_region *verbs_dmabuf_register(struct dmabuf_cache *cache, const void *base,
                                            size_t size, struct error_text *why);
void verbs_dmabuf_release(struct dmabuf_cache *cache, struct dmabuf_region *region);

#endif
