/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of protocols, by index of the model and by method of the wire. */
#include "base/protocol.h"

struct protocols protocols;

/* Of two protocols with one method, which differ only at the sender, the first one handles RTR
 * and RTS. */
static void method_add(const struct protocol *protocol)
{
    if (protocol->method && !protocols.of_method[protocol->method])
        protocols.of_method[protocol->method] = protocol;
}

void protocols_use(const struct protocol *const of_model[MODEL_PROTOCOLS])
{
    protocols = (struct protocols){.of_model = {NULL}};
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        const struct protocol *protocol = of_model[i];
        protocols.of_model[i] = protocol;
        if (!protocol)
            continue;
        method_add(protocol);
        if (protocol->over_device_lane)
            method_add(protocol->over_device_lane);
    }
}
