/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering a component's parameters, and reading those of others before they exist. */
#ifndef MULTILANE_COMPAT_PARAM_H
#define MULTILANE_COMPAT_PARAM_H

#include <stdbool.h>

#include "opal_config.h"
#include "opal/mca/mca.h"

/* A row of a component's table of parameters. Numbers that are not integers, sizes and lists are
 * strings: Open MPI's own conversions take "abc" for 0 and "64x" for 64. */
struct param {
    const char *name;
    enum {
        PARAM_INT,
        PARAM_STRING,
        PARAM_SHOWN, /* text that cannot be set */
        PARAM_LANE   /* a string for each user's key of a lane's attributes: NAME_KEY */
    } type;
    /* int *, or const char ** whose text is Open MPI's; holds the default before, which an empty
     * text stands for as well. PARAM_LANE: struct attr_parameters *. */
    void *storage;
    const char *help; /* PARAM_LANE: null, the table of attributes has it */
};

/* Registers `count` rows for `component`; an Open MPI error code at the first that fails. */
int param_register(const mca_base_component_t *component, const struct param *rows, int count);

/* What a number may be. */
struct param_range {
    const char *name;
    const int *value;
    int least, most;
};

/* Is every number in its range? Says which are not. */
bool param_check(const mca_base_component_t *component, const struct param_range *ranges,
                 int count);

/* The value that the user gave, or will be found to have given, to a variable of `framework`,
 * asked by the same rules and from the same sources as Open MPI's own, whether or not its owner
 * has registered it yet. Component and variable may be NULL (the framework's own selection).
 * A string is the caller's to free; NULL where none was given. */
char *param_peek_string(const char *framework, const char *component, const char *variable);
int param_peek_int(const char *framework, const char *component, const char *variable,
                   int default_value);

#endif
