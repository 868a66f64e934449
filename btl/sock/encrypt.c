/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, and how the kernel gets them. */
#include "btl/sock/encrypt.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/tcp.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SOL_TLS
#define SOL_TLS 282
#endif

/* From libcrypto, which is opened where it is needed: most jobs do not encrypt. */
static const void *(*sha256)(void);
static unsigned char *(*hmac)(const void *hash, const void *key, int key_length,
                              const unsigned char *bytes, size_t length, unsigned char *result,
                              unsigned int *result_length);

static bool library_open(void)
{
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !hmac; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);

        if (!library)
            continue;
        *(void **) (void *) &sha256 = dlsym(library, "EVP_sha256");
        *(void **) (void *) &hmac = sha256 ? dlsym(library, "HMAC") : NULL;
    }
    return hmac != NULL;
}

bool encrypt_derive(struct encrypt_bytes secret, struct encrypt_bytes salt,
                    struct encrypt_bytes purpose, unsigned char derived[ENCRYPT_DERIVED_BYTES])
{
    unsigned char key[ENCRYPT_DERIVED_BYTES], text[ENCRYPT_PURPOSE_MOST + 1];
    unsigned int length;

    if (!library_open())
        return false;
    memcpy(text, purpose.at, (size_t) purpose.length);
    text[purpose.length] = 1; /* the first block of the expansion */
    bool good =
        hmac(sha256(), salt.at, salt.length, secret.at, (size_t) secret.length, key, &length) &&
        hmac(sha256(), key, sizeof(key), text, (size_t) purpose.length + 1, derived, &length);
    explicit_bzero(key, sizeof(key));
    return good;
}

static bool layer_begin(int fd)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) == 0;
}

static bool direction_begin(int fd, int direction, const unsigned char *derived)
{
    struct tls12_crypto_info_aes_gcm_128 keys = {
        .info = {.version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128}};

    _Static_assert(sizeof(keys.key) + sizeof(keys.salt) + sizeof(keys.iv) <= ENCRYPT_DERIVED_BYTES,
                   "one block holds all");
    memcpy(keys.key, derived, sizeof(keys.key));
    memcpy(keys.salt, derived + sizeof(keys.key), sizeof(keys.salt));
    memcpy(keys.iv, derived + sizeof(keys.key) + sizeof(keys.salt), sizeof(keys.iv));
    bool good = setsockopt(fd, SOL_TLS, direction, &keys, sizeof(keys)) == 0;
    explicit_bzero(&keys, sizeof(keys));
    return good;
}

bool encrypt_begin(int fd, const struct seal *secret, const struct seal *caller,
                   const struct seal *listener, bool is_caller)
{
    static const char from_caller[] = "multilane sock from caller",
                      from_listener[] = "multilane sock from listener";
    _Static_assert(sizeof(from_listener) <= ENCRYPT_PURPOSE_MOST, "the longer of the two");
    const struct seal nonces[] = {*caller, *listener};
    const struct encrypt_bytes key = {secret, sizeof(*secret)}, salt = {nonces, sizeof(nonces)};
    unsigned char called[ENCRYPT_DERIVED_BYTES], answered[ENCRYPT_DERIVED_BYTES];

    errno = ENOSYS; /* where no keys can be made */
    bool good =
        encrypt_derive(key, salt, (struct encrypt_bytes){from_caller, sizeof(from_caller)},
                       called) &&
        encrypt_derive(key, salt, (struct encrypt_bytes){from_listener, sizeof(from_listener)},
                       answered) &&
        layer_begin(fd) && direction_begin(fd, TLS_TX, is_caller ? called : answered) &&
        direction_begin(fd, TLS_RX, is_caller ? answered : called);
    explicit_bzero(called, sizeof(called));
    explicit_bzero(answered, sizeof(answered));
    return good;
}

/* --- can this process? --- */

/* A connection of this process with itself; -1: there can be none. */
static int own_connection(int *listener)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = (struct sockaddr *) &at;
    socklen_t length = sizeof(at);
    int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (caller >= 0 && *listener >= 0 && bind(*listener, address, length) == 0 &&
        listen(*listener, 1) == 0 && getsockname(*listener, address, &length) == 0 &&
        connect(caller, address, length) == 0)
        return caller;
    if (caller >= 0)
        close(caller);
    return -1;
}

/* The kernel may have TLS and not the cipher. Where there is no loopback to try it over, the
 * connections find out. */
static int kernel_error(void)
{
    const unsigned char any[ENCRYPT_DERIVED_BYTES] = {0};
    int listener, caller = own_connection(&listener), error = 0;

    if (caller >= 0 && !(layer_begin(caller) && direction_begin(caller, TLS_TX, any) &&
                         direction_begin(caller, TLS_RX, any)))
        error = errno;
    if (caller >= 0)
        close(caller);
    if (listener >= 0)
        close(listener);
    return error;
}

bool encrypt_open(struct error_text *why)
{
    int error = kernel_error();

    if (error == ENOENT)
        return fail_with(why, "the kernel has no TLS or no AES-GCM (as root: modprobe tls)");
    if (error != 0)
        return fail_with(why, "the kernel's TLS cannot be used: %s", strerror(error));
    return library_open() ||
           fail_with(why, "libcrypto.so.3 (Debian's libssl3), which makes the keys, is missing");
}
