/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks a fabric of the strict stand-in for an event while a job runs over it. */
#include "strict.h"

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    char *end = NULL;
    long device = count == 5 ? strtol(words[3], &end, 10) : -1;
    long port = end && *end == '\0' ? strtol(words[4], &end, 10) : -1;

    if (device < 0 || device >= DEVICES || port < 1 || port > PORTS || *end != '\0') {
        fprintf(stderr, "usage: strict_do FABRIC EVENT DEVICE PORT\nEVENT: %s\n", event_names);
        return 2;
    }
    setenv("MULTILANE_STRICT_FABRIC", words[1], 1);
    if (strict_verbs_event(words[2], (uint32_t) device, (uint32_t) port))
        return 0;
    fprintf(stderr, "strict_do: no event \"%s\"; there are %s\n", words[2], event_names);
    return 2;
}
