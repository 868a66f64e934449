/* SPDX-License-Identifier: BSD-3-Clause */
/* The encryption of connections (btl_sock_tls): by the kernel's TLS, AES-GCM of 128 bits, with a
 * key for each direction of each connection. Both ends derive them (HKDF, RFC 5869, by libcrypto)
 * from the secret by which the greeting is sealed, and its two nonces; no key travels. */
#ifndef MULTILANE_SOCK_ENCRYPT_H
#define MULTILANE_SOCK_ENCRYPT_H

#include <stdbool.h>
#include <stddef.h>

#include "btl/sock/seal.h"
#include "common/model/error.h"

#define ENCRYPT_DERIVED_BYTES 32u
#define ENCRYPT_PURPOSE_MOST  63u

struct encrypt_bytes {
    const void *at;
    int length;
};

/* Can this process encrypt? False: `why` says what is missing. */
bool encrypt_open(struct error_text *why);

/* The first bytes of HKDF-SHA256, for a purpose of at most ENCRYPT_PURPOSE_MOST bytes. False: there
 * is no libcrypto. */
bool encrypt_derive(struct encrypt_bytes secret, struct encrypt_bytes salt,
                    struct encrypt_bytes purpose, unsigned char derived[ENCRYPT_DERIVED_BYTES]);

/* All that is sent and read by the socket from now on is encrypted. `caller` and `listener` are
 * their nonces. False: errno says why; the socket is of no use. */
bool encrypt_begin(int fd, const struct seal *secret, const struct seal *caller,
                   const struct seal *listener, bool is_caller);

#endif
