/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the two rules that decide whether the plugin acts: which Open MPI it loads into, and
 * which jobs asked for it. */
#include "common/compat/named.h"
#include "common/compat/version.h"

#include <stdio.h>

static int failures;

static void expect(bool wanted, bool got, const char *rule, const char *first, const char *second)
{
    if (wanted != got) {
        fprintf(stderr, "%s(%s, %s) is %s\n", rule, first ? first : "NULL", second,
                got ? "true" : "false");
        ++failures;
    }
}

static void layouts_decide_in_a_series_and_nothing_else_is_accepted(void)
{
    static const struct {
        const char *built, *running;
        enum version_relation wanted;
    } cases[] = {
        {"4.1.4", "4.1.4", VERSION_CHECKED},       {"4.1.4", "4.1.8", VERSION_CHECKED},
        {"4.1.8", "4.1.4", VERSION_CHECKED},       {"5.0.7", "5.0.9", VERSION_CHECKED},
        {"5.0.11", "5.0.10", VERSION_CHECKED},     {"6.0.0rc2", "6.0.0rc2", VERSION_CHECKED},
        {"unknown", "unknown", VERSION_CHECKED},   {"4.1.4", "4.1.3", VERSION_OF_SERIES},
        {"4.1.4", "4.1.9", VERSION_OF_SERIES},     {"4.1.9", "4.1.4", VERSION_OF_SERIES},
        {"4.1.9", "4.1.10", VERSION_OF_SERIES},    {"5.0.7", "5.0.10", VERSION_OF_SERIES},
        {"5.0.7", "5.0.6", VERSION_OF_SERIES},     {"5.0.7", "5.0.12", VERSION_OF_SERIES},
        {"6.0.0", "6.0.1", VERSION_OF_SERIES},     {"4.1.4", "4.0.4", VERSION_FOREIGN},
        {"5.0.7", "5.1.7", VERSION_FOREIGN},       {"5.0.7", "4.1.7", VERSION_FOREIGN},
        {"4.1.7", "5.0.7", VERSION_FOREIGN},       {"6.0.0rc2", "6.0.0", VERSION_FOREIGN},
        {"6.0.0rc2", "6.0.0rc1", VERSION_FOREIGN}, {"5.0.7rc1", "5.0.7", VERSION_FOREIGN},
        {"5.0.7", "5.0.8rc1", VERSION_FOREIGN},    {"4.1.4", "", VERSION_FOREIGN},
        {"4.1.4", "4.1", VERSION_FOREIGN},         {"4.1.4", "nonsense", VERSION_FOREIGN},
        {"4.1.4", "4.1.4.1", VERSION_FOREIGN},     {"4.1.4", "v4.1.5", VERSION_FOREIGN},
        {"6.0.0rc2", "7.0.0", VERSION_FOREIGN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        enum version_relation got = version_compare(cases[i].built, cases[i].running);
        if (got != cases[i].wanted) {
            fprintf(stderr, "version_compare(%s, %s) is %d\n", cases[i].built, cases[i].running,
                    got);
            ++failures;
        }
    }
}

static void version_built_for_is_compatible_with_itself(void)
{
    expect(true, version_compare(version_built, version_built) == VERSION_CHECKED,
           "version_compare", version_built, version_built);
}

static void selection_names_whole_words_only(void)
{
    static const struct {
        const char *selection;
        bool named, excluded;
    } cases[] = {
        {NULL, false, false},          {"", false, false},        {"shm", true, false},
        {"self,shm,tcp", true, false}, {"self,shm", true, false}, {"self,shmem", false, true},
        {"self,sh", false, true},      {"self", false, true},     {"^shm", false, true},
        {"^tcp", false, false},        {"^tcp,shm", false, true}, {",shm,", true, false},
        {"self,,shm", true, false},    {"xshm", false, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        expect(cases[i].named, named_in_selection(cases[i].selection, "shm"), "named_in_selection",
               cases[i].selection, "shm");
        expect(cases[i].excluded, named_excluded(cases[i].selection, "shm"), "named_excluded",
               cases[i].selection, "shm");
    }
}

int main(void)
{
    layouts_decide_in_a_series_and_nothing_else_is_accepted();
    version_built_for_is_compatible_with_itself();
    selection_names_whole_words_only();
    return failures > 0;
}
