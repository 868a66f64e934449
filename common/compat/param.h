/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering a component's parameters, and reading those of others before they exist. */
#ifndef MULTILANE_COMPAT_PARAM_H
#define MULTILANE_COMPAT_PARAM_H

#include <stdbool.h>

#include "opal_config.h"
#include "opal/mca/mca.h"

/* One of some words, by its text and, once it was checked, by its number among them. */
struct param_word {
    const char *text;
    int number;
};

/* A row of a component's table of parameters; the last one has no name. Numbers that are not
 * integers, sizes and lists are strings: Open MPI's own conversions take "abc" for 0 and "64x" for
 * 64. An integer of "0 to 1" may also be yes, no, on, off, true or false. */
struct param {
    const char *name;
    enum {
        PARAM_INT,
        PARAM_STRING,
        PARAM_WORD,
        PARAM_SHOWN, /* text that cannot be set */
        PARAM_LANE   /* a string for each user's key of a lane's attributes: NAME_KEY */
    } type;
    /* int *, const char ** whose text is Open MPI's, struct param_word * or struct attr_parameters
     * *; holds the default before, which an empty text stands for as well. */
    void *storage;
    /* What it may be, as it is said to who gives something else: "1 to 31", "1 or more", "16 to
     * 64, or 0"; "auto, yes or no". Null: anything, or what the component says. */
    const char *may_be;
    const char *help; /* PARAM_LANE: null, the table of attributes has it */
};

/* Registers the rows for `component`; an Open MPI error code at the first that fails. */
int param_register(const mca_base_component_t *component, const struct param *rows);

/* Is all what it may be? Says what is not. */
bool param_check(const mca_base_component_t *component, const struct param *rows);

/* The value that the user gave, or will be found to have given, to a variable of `framework`,
 * asked by the same rules and from the same sources as Open MPI's own, whether or not its owner
 * has registered it yet. Component and variable may be NULL (the framework's own selection).
 * A string is the caller's to free; NULL where none was given. */
char *param_peek_string(const char *framework, const char *component, const char *variable);
int param_peek_int(const char *framework, const char *component, const char *variable,
                   int default_value);

#endif
