/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into one process of a job: what its PML publishes is changed on the way to PMIx, as if
 * it were another release or on another architecture. MULTILANE_FORGE says what: version, order,
 * pointer, magic or short. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The start of pmix_value_t, of a value that is bytes. */
struct value {
    uint16_t type;
    struct {
        unsigned char *bytes;
        size_t size;
    } object;
};

typedef int (*put_function)(unsigned char scope, const char *key, struct value *value);

__attribute__((visibility("default"))) int PMIx_Put(unsigned char scope, const char *key,
                                                    struct value *value);

static const unsigned char magic[8] = "MLTLANE";

/* Offsets are those of struct record: what stands before byte_order never moves. */
static void forge(unsigned char *record, const char *what, size_t *size)
{
    if (strcmp(what, "version") == 0)
        record[8] = 77;
    else if (strcmp(what, "pointer") == 0)
        record[9] = 4;
    else if (strcmp(what, "order") == 0)
        memcpy(record + 12, (const unsigned char[]){1, 2, 3, 4}, 4);
    else if (strcmp(what, "magic") == 0)
        record[0] = 'X';
    else if (strcmp(what, "short") == 0)
        *size = 10;
}

/* The key of another release: where it ends in a version, that is another one. */
static const char *key_forged(const char *key, const char *what, char *forged, size_t bytes)
{
    size_t length = strlen(key);

    if (strcmp(what, "version") != 0 || length >= bytes ||
        !isdigit((unsigned char) key[length - 1]))
        return key;
    memcpy(forged, key, length + 1);
    forged[length - 1] = forged[length - 1] == '9' ? '8' : '9';
    return forged;
}

int PMIx_Put(unsigned char scope, const char *key, struct value *value)
{
    char forged[128];
    put_function next = (put_function) (uintptr_t) dlsym(RTLD_NEXT, "PMIx_Put");
    const char *what = getenv("MULTILANE_FORGE");
    if (what && strstr(key, "multilane") && value->object.bytes &&
        value->object.size > sizeof(magic)) {
        unsigned char *record =
            memmem(value->object.bytes, value->object.size, magic, sizeof(magic));
        if (record) {
            forge(record, what, &value->object.size);
            key = key_forged(key, what, forged, sizeof(forged));
        }
    }
    return next(scope, key, value);
}
