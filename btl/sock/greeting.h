/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two ends of a new connection say before any message, and what of it is believed.
 *
 *     caller                          listener
 *     connects
 *                    CHALLENGE  <-    its nonce
 *     HELLO    ->                     who calls whom, how far it has received; sealed with both
 *                                     nonces by the secret that the listener's process published
 *                    WELCOME    <-    how far the listener has received; sealed likewise
 *
 * The secret travels by the job's own runtime, so who knows it belongs to the job; the nonces make
 * each seal good for one connection. */
#ifndef MULTILANE_SOCK_GREETING_H
#define MULTILANE_SOCK_GREETING_H

#include <stdbool.h>
#include <stdint.h>

#include "btl/sock/seal.h"
#include "opal/util/proc.h"

#define GREETING_MAGIC   UINT64_C(0x0a6b636f734c4d89) /* 0x89 "MLsock" and a line feed */
#define GREETING_VERSION 2u

enum greeting_kind {
    GREETING_CHALLENGE = 1,
    GREETING_HELLO,
    GREETING_WELCOME,
    GREETING_LATER /* not now: call again */
};

struct greeting {
    uint64_t magic;
    uint32_t version;
    uint32_t kind; /* enum greeting_kind */
    opal_process_name_t from, to;
    uint32_t from_rail, to_rail; /* of the addresses in the two records */
    uint32_t session;            /* each end counts how often the lane was given up */
    uint32_t call;               /* the caller's number of this attempt */
    uint32_t have;               /* frames of this session that the one who speaks has received */
    uint32_t heard;        /* the last call of the other end that the one who speaks has taken */
    uint32_t past_session; /* the last one before this in which there was a connection, */
    uint32_t past_have;    /* and frames received in it; 0: there was none */
    struct seal nonce;     /* of the one who speaks */
    struct seal seal;      /* over all before it and the other end's nonce */
};

/* Fills in magic, version and seal. */
void greeting_seal(struct greeting *greeting, const struct seal *secret,
                   const struct seal *their_nonce);

/* Is it one of this kind and version, and with a secret, sealed by it? */
bool greeting_is(const struct greeting *greeting, enum greeting_kind kind,
                 const struct seal *secret, const struct seal *my_nonce);

#endif
