/* SPDX-License-Identifier: BSD-3-Clause */
/* The right of other processes to read this one lasts as long as anyone needs it, and is asked for
 * and given back once. Takes no time. */
#include "common/lane/readers.h"
#include "test/unit/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* In the place of the system's. */
static unsigned long allowed;
static int calls, refusals;

int prctl(int option, ...)
{
    va_list arguments;

    va_start(arguments, option);
    unsigned long who = va_arg(arguments, unsigned long);
    va_end(arguments);
    CHECK(option == PR_SET_PTRACER, "prctl %d", option);
    calls++;
    if (refusals > 0)
        return -1;
    allowed = who;
    return 0;
}

static void expect(unsigned long who, int calls_wanted, const char *when)
{
    CHECK(allowed == who, "%s: process %lu may read", when, allowed);
    CHECK(calls == calls_wanted, "%s: the system was asked %d times", when, calls);
}

int main(void)
{
    /* A parent's count. */
    setenv("MULTILANE_READERS", "1 7", 1);
    CHECK(readers_allow(), "the first");
    expect(PR_SET_PTRACER_ANY, 1, "one user");
    CHECK(readers_allow(), "the second");
    expect(PR_SET_PTRACER_ANY, 1, "two users");
    readers_forbid();
    expect(PR_SET_PTRACER_ANY, 1, "one of two has gone");
    readers_forbid();
    expect(0, 2, "both have gone");
    readers_forbid();
    expect(0, 2, "none was left");
    CHECK(!getenv("MULTILANE_READERS"), "something stays in the environment");
    refusals = 1;
    CHECK(!readers_allow(), "it was refused");
    expect(0, 3, "refused");
    refusals = 0;
    CHECK(readers_allow(), "the refused one was counted");
    expect(PR_SET_PTRACER_ANY, 4, "after a refusal");
    return check_end();
}
