/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts who needs this process's memory and file descriptors to be open to its user's others. */
#include "common/lane/readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* "PROCESS COUNT": what a parent left in the environment is not ours. */
static const char variable[] = "MULTILANE_READERS";

static unsigned users_get(void)
{
    const char *text = getenv(variable);
    unsigned users = 0;
    int process = 0;

    return text && sscanf(text, "%d %u", &process, &users) == 2 && process == (int) getpid() ? users
                                                                                             : 0;
}

static bool users_set(unsigned users)
{
    char text[32];

    if (users == 0)
        return unsetenv(variable) == 0;
    snprintf(text, sizeof(text), "%d %u", (int) getpid(), users);
    return setenv(variable, text, 1) == 0;
}

/* Without Yama the system says no, and the right is not needed. */
bool readers_allow(void)
{
    unsigned users = users_get();

    if (users == 0 && prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) != 0)
        return false;
    return users_set(users + 1);
}

void readers_forbid(void)
{
    unsigned users = users_get();

    if (users == 1)
        (void) prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    if (users > 0)
        users_set(users - 1);
}
