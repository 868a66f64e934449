/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of btl/sock, with the defaults of its parameters. */
#include "btl/sock/sock.h"

#include "common/sum/crc32c.h"

struct sock_state sock = {.interfaces = "auto",
                          .lost_s = 60,
                          .tls_mib = 65536,
                          .poll_fd = -1,
                          .spare_fd = -1,
                          .clock_ms = 1};

/* A wrong bit anywhere changes it, which test/unit/sock_parts.c shows. */
uint8_t sock_frame_check(const struct frame_header *header)
{
    struct frame_header bare = *header;

    bare.check = 0;
    return (uint8_t) crc32c(0, &bare, sizeof(bare));
}

struct sock_module *sock_module_nth(struct sock_module *first, uint32_t nth)
{
    if (nth == 0)
        return first;
    /* Acquire: pairs with links.c; who finds a module finds it whole. */
    return nth < SOCK_LINKS_MAX ? atomic_load_explicit(&first->further[nth], memory_order_acquire)
                                : NULL;
}

struct sock_module *sock_module_of_rail(uint32_t rail)
{
    for (uint32_t i = 0; i < sock.module_count; i++)
        if (sock.modules[i]->address == rail % ADDRESSES_MAX && rail < sock_rail(0, SOCK_LINKS_MAX))
            return sock_module_nth(sock.modules[i], rail / ADDRESSES_MAX);
    return NULL;
}

struct sock_address *sock_module_address(const struct sock_module *module)
{
    return &sock.record.addresses[module->address];
}
