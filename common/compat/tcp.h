/* SPDX-License-Identifier: BSD-3-Clause */
/* Which socket an endpoint of Open MPI's btl/tcp talks by: it tells in no header that is installed.
 */
#ifndef MULTILANE_COMPAT_TCP_H
#define MULTILANE_COMPAT_TCP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "opal/class/opal_list.h"
#include "opal/mca/btl/btl.h"

static inline bool compat_is_tcp(const mca_btl_base_module_t *btl)
{
    return strcmp(btl->btl_component->btl_version.mca_component_name, "tcp") == 0;
}

/* How struct mca_btl_base_endpoint_t of btl/tcp begins, in 4.1, 5.0 and 6.0 alike. */
struct compat_tcp_endpoint {
    opal_list_item_t super;
    const mca_btl_base_module_t *module;
    void *proc;
    void *address;
    _Atomic int socket;
};

/* The socket of a connection with that one process, made or being made; -1: there is none, or the
 * endpoint is laid out otherwise, as it does not name its own module where it should. */
static inline int compat_tcp_socket(const mca_btl_base_module_t *btl,
                                    const struct mca_btl_base_endpoint_t *endpoint)
{
    const struct compat_tcp_endpoint *tcp =
        (const struct compat_tcp_endpoint *) (const void *) endpoint;
    if (tcp == NULL || tcp->module != btl)
        return -1;
    /* Relaxed, against plain stores of btl/tcp, in a thread of its own where it has one: who sees
     * an old one asks for a socket that was closed, and is told so, or for once of another one. */
    return atomic_load_explicit(&tcp->socket, memory_order_relaxed);
}

#endif
