/* SPDX-License-Identifier: BSD-3-Clause */
/* Greetings: how they are sealed and checked. */
#include "btl/sock/greeting.h"

#include <stddef.h>
#include <string.h>

static struct seal seal_of(const struct greeting *greeting, const struct seal *secret,
                           const struct seal *nonce)
{
    unsigned char bytes[offsetof(struct greeting, seal) + sizeof(*nonce)];

    memcpy(bytes, greeting, offsetof(struct greeting, seal));
    memcpy(bytes + offsetof(struct greeting, seal), nonce, sizeof(*nonce));
    return seal_make(secret, bytes, sizeof(bytes));
}

void greeting_seal(struct greeting *greeting, const struct seal *secret,
                   const struct seal *their_nonce)
{
    greeting->magic = GREETING_MAGIC;
    greeting->version = GREETING_VERSION;
    greeting->seal = seal_of(greeting, secret, their_nonce);
}

bool greeting_is(const struct greeting *greeting, enum greeting_kind kind,
                 const struct seal *secret, const struct seal *my_nonce)
{
    if (greeting->magic != GREETING_MAGIC || greeting->version != GREETING_VERSION ||
        greeting->kind != (uint32_t) kind)
        return false;
    struct seal seal = seal_of(greeting, secret, my_nonce);
    return seals_equal(&seal, &greeting->seal);
}
