/* SPDX-License-Identifier: BSD-3-Clause */
/* A library's calls of another library come to a function of ours, and only that library's. Three
 * libraries that the dynamic linker connects in three ways: by a table that stays writable, by one
 * that is read-only from the start, and without a table of calls. */
#include "common/compat/library_calls.h"

#include <dlfcn.h>
#include <string.h>

#include "check.h"

static int our_answer(void)
{
    return 2;
}

typedef void library_function(void);

static library_function *function_of(const char *library, const char *name)
{
    char path[4096];
    library_function *found;
    snprintf(path, sizeof(path), LIBRARIES "/%s", library);
    void *handle = dlopen(path, RTLD_LAZY);
    void *symbol = handle ? dlsym(handle, name) : NULL;
    CHECK(symbol, "%s of %s: %s", name, path, handle ? "not there" : dlerror());
    memcpy(&found, &symbol, sizeof(found));
    return found;
}

/* `asks` calls `answer` of another library. */
static void check_library(const char *asker, const char *other, library_function *answer)
{
    int (*asks)(void) = (int (*)(void)) function_of(asker, "asks");
    int (*others_ask)(void) = (int (*)(void)) function_of(other, "asks");
    if (!asks || !others_ask || !answer)
        return;
    CHECK(!library_entry_set(asker, "answers", (uintptr_t) our_answer), "%s", asker);
    CHECK(asks() == 1, "%s: %d before", asker, asks());
    CHECK(library_entry_set(asker, "answer", (uintptr_t) our_answer), "%s", asker);
    CHECK(asks() == 2, "%s: %d", asker, asks());
    CHECK(others_ask() == 1, "%s: %d by %s", asker, others_ask(), other);
    CHECK(library_entry_set(asker, "answer", (uintptr_t) answer), "%s", asker);
    CHECK(asks() == 1, "%s: %d after", asker, asks());
}

int main(void)
{
    library_function *answer = function_of("libcalls_answer.so", "answer");
    check_library("libcalls_lazy.so", "libcalls_now.so", answer);
    check_library("libcalls_now.so", "libcalls_lazy.so", answer);
    check_library("libcalls_plain.so", "libcalls_lazy.so", answer);
    CHECK(!library_entry_set("libcalls_none", "answer", (uintptr_t) answer), "of no library");
    return check_end();
}
