/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads options. */
#include "tools/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/number.h"

/* What getopt_long returns for row i is FIRST_ROW + i: no letter. */
#define FIRST_ROW 256

/* Prints it and ends the program. */
static bool say(const char *text)
{
    bool is_written = fputs(text, stdout) >= 0 && fflush(stdout) == 0;
    exit(is_written ? EXIT_SUCCESS : EXIT_FAILURE);
}

static bool value_read(const struct option_row *row, const char *value, struct error_text *why)
{
    uint64_t count;
    switch (row->kind) {
    case OPTION_FLAG:
        return *(bool *) row->at = true;
    case OPTION_PRINT:
        return say(*(const char **) row->at);
    case OPTION_TEXT:
        *(const char **) row->at = value;
        return true;
    case OPTION_COUNT:
        if (!number_parse_count(value, 0, 1000000, &count, why))
            return false;
        *(uint32_t *) row->at = (uint32_t) count;
        return true;
    case OPTION_REAL:
        return number_parse_real(value, row->at, why);
    default:
        return row->read(value, row->at, why);
    }
}

static bool row_read(const struct option_row *row, struct error_text *error)
{
    struct error_text why = {""};
    if (!value_read(row, optarg, &why))
        return fail_with(error, "--%s: %.250s", row->name, why.text);
    return true;
}

int options_read(int argc, char **argv, const struct option_row *rows, struct error_text *error)
{
    struct option names[OPTIONS_MAX + 1] = {{.name = NULL}};
    int found;
    for (int i = 0; rows[i].name && i < OPTIONS_MAX; i++)
        names[i] = (struct option){rows[i].name,
                                   rows[i].kind <= OPTION_PRINT ? no_argument : required_argument,
                                   NULL, FIRST_ROW + i};
    opterr = 0;
    while ((found = getopt_long(argc, argv, ":", names, NULL)) != -1) {
        if (found >= FIRST_ROW) {
            const struct option_row *row = &rows[found - FIRST_ROW];
            if (!row_read(row, error))
                return -1;
            while (row->kind == OPTION_SEVERAL && optind < argc &&
                   row->read(argv[optind], row->at, NULL))
                optind++;
            continue;
        }
        if (found == ':')
            fail_with(error, "%.60s needs a value", argv[optind - 1]);
        else if (optopt >= FIRST_ROW)
            fail_with(error, "--%s takes no value", rows[optopt - FIRST_ROW].name);
        else if (optopt > 0)
            fail_with(error, "there is no option -%c; --help lists them", optopt);
        else
            fail_with(error, "there is no option %.60s; --help lists them", argv[optind - 1]);
        return -1;
    }
    return optind;
}
