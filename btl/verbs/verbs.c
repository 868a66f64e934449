/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of btl/verbs, with the defaults of its parameters. */
#include "btl/verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct verbs_state verbs = {
    .devices = "auto",
    .pairing = {.text = "route"},
    .same_node = {.text = "auto"},
    .dmabuf = {.text = "auto"},
    .gid_index = -1,
    .timeout = 18,
    .retry_count = 6,
    .receive_buffers = 256,
    .receive_buffers_most = 4096,
};

struct verbs_module *verbs_module_of_port(uint32_t port_index)
{
    for (uint32_t i = 0; i < verbs.module_count; i++)
        if (verbs.modules[i]->port_index == port_index)
            return verbs.modules[i];
    return NULL;
}

bool verbs_memory_make(struct verbs_memory *memory, struct ibv_pd *pd, size_t bytes, int access)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE);

    memory->bytes = aligned_alloc(page, (bytes + page - 1) / page * page);
    if (!memory->bytes)
        return false;
    memory->region = ibv_reg_mr(pd, memory->bytes, bytes, access);
    if (memory->region)
        return true;
    int error = errno;
    free(memory->bytes);
    memory->bytes = NULL;
    errno = error;
    return false;
}

void verbs_memory_free(struct verbs_memory *memory)
{
    if (memory->bytes)
        ibv_dereg_mr(memory->region);
    free(memory->bytes);
    memory->bytes = NULL;
}

__attribute__((noinline)) void verbs_message_broken(struct verbs_module *module, const char *what)
{
    if (!atomic_exchange_explicit(&module->broken_said, true, memory_order_relaxed))
        VERBS_SAY("%s: %s; it and others like it are dropped. Do all processes use the same pml?",
                  module->device, what);
}
