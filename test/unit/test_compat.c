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

static void versions_known_to_be_alike_are_accepted_and_others_refused(void)
{
    static const struct {
        const char *built, *running;
        bool compatible;
    } cases[] = {
        {"4.1.4", "4.1.4", true},     {"4.1.4", "4.1.8", true},
        {"4.1.8", "4.1.4", true},     {"4.1.4", "4.1.3", false},
        {"4.1.4", "4.1.9", false},    {"4.1.4", "4.1.40", false},
        {"4.1.4", "4.0.4", false},    {"5.0.7", "5.0.7", true},
        {"5.0.7", "5.0.11", true},    {"5.0.11", "5.0.7", true},
        {"5.0.7", "5.0.6", false},    {"5.0.7", "5.0.12", false},
        {"5.0.7", "5.1.7", false},    {"5.0.7", "4.1.7", false},
        {"4.1.7", "5.0.7", false},    {"6.0.0rc2", "6.0.0rc2", true},
        {"6.0.0rc2", "6.0.0", false}, {"6.0.0rc2", "6.0.0rc1", false},
        {"6.0.0", "6.0.1", false},    {"5.0.7rc1", "5.0.7", false},
        {"5.0.7", "5.0.8rc1", false}, {"4.1.4", "", false},
        {"4.1.4", "4.1", false},      {"4.1.4", "nonsense", false},
        {"4.1.4", "4.1.4.1", false},  {"4.1.4", "v4.1.5", false},
        {"6.0.0rc2", "7.0.0", false}, {"unknown", "unknown", true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        expect(cases[i].compatible, version_is_compatible(cases[i].built, cases[i].running),
               "version_is_compatible", cases[i].built, cases[i].running);
    }
}

static void version_built_for_is_compatible_with_itself(void)
{
    expect(true, version_is_compatible(version_built, version_built), "version_is_compatible",
           version_built, version_built);
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
    versions_known_to_be_alike_are_accepted_and_others_refused();
    version_built_for_is_compatible_with_itself();
    selection_names_whole_words_only();
    return failures > 0;
}
