/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a program: --name, --name VALUE or --name=VALUE. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/error.h"

enum option_kind {
    OPTION_FLAG,   /* bool, set to true */
    OPTION_PRINT,  /* a const char *, which is printed, and the program ends: --help */
    OPTION_TEXT,   /* const char *; this one and those that follow have a value */
    OPTION_COUNT,  /* uint32_t, at most 1000000 */
    OPTION_REAL,   /* double, 0 or more */
    OPTION_OWN,    /* read by the row's own function */
    OPTION_SEVERAL /* so are the arguments that follow, as long as it takes them */
};

struct option_row {
    const char *name; /* without -- */
    enum option_kind kind;
    void *at;
    bool (*read)(const char *value, void *at, struct error_text *why);
};

#define OPTIONS_MAX 32

/* Reads the options; the last row has no name. Returns the index of the first argument that is none
 * and belongs to none, all of which stand last now; or -1 with a sentence. */
int options_read(int argc, char **argv, const struct option_row *rows, struct error_text *error);

#endif
