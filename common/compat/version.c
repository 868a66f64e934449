/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds the version and the layouts of the running Open MPI against those compiled for. In one
 * series the layouts decide; the releases that are known here only spare the user a sentence. */
#include "common/compat/version.h"

#include "common/compat/compat.h"
#include "common/compat/layout.h"
#include "common/compat/named.h"
#include "common/compat/param.h"
#include "common/model/number.h"
#include "common/sum/fnv.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "opal/runtime/opal.h"
#include "opal/util/output.h"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

const char version_built[] =
    TEXT(OPAL_MAJOR_VERSION) "." TEXT(OPAL_MINOR_VERSION) "." TEXT(OPAL_RELEASE_VERSION)
        OPAL_GREEK_VERSION;

/* Releases that run the tests, or whose headers config/ompi-layouts found like those of one that
 * does: within a row all are alike. The same rows as in config/ompi-headers.sh. */
static const struct {
    int major, minor, first_release, last_release;
} version_checked[] = {
    {4, 1, 4, 8},
    {5, 0, 7, 9},
    {5, 0, 10, 11},
};

struct version {
    int major, minor, release;
};

/* False for anything but three numbers with nothing behind them: a pre-release is like no other,
 * because until the release even constants change, which no size shows. */
static bool version_read(const char *text, struct version *version)
{
    int end = 0;

    return sscanf(text, "%d.%d.%d%n", &version->major, &version->minor, &version->release, &end) ==
               3 &&
           text[end] == '\0';
}

/* The row of version_checked that `version` belongs to, or -1. */
static int version_row(const struct version *version)
{
    for (size_t i = 0; i < sizeof(version_checked) / sizeof(version_checked[0]); ++i) {
        if (version->major == version_checked[i].major &&
            version->minor == version_checked[i].minor &&
            version->release >= version_checked[i].first_release &&
            version->release <= version_checked[i].last_release)
            return (int) i;
    }
    return -1;
}

enum version_relation version_compare(const char *built, const char *running)
{
    struct version built_for, found;

    if (strcmp(built, running) == 0)
        return VERSION_CHECKED;
    if (!version_read(built, &built_for) || !version_read(running, &found) ||
        built_for.major != found.major || built_for.minor != found.minor)
        return VERSION_FOREIGN;
    return version_row(&built_for) >= 0 && version_row(&built_for) == version_row(&found)
               ? VERSION_CHECKED
               : VERSION_OF_SERIES;
}

static bool untested_is_wanted(void)
{
    return param_peek_int("pml", "multilane", "untested", 0) > 0;
}

/* The digest of layouts that a component has found to be those of the running Open MPI, 0 before.
 * To compare takes half a million instructions: of the components that are loaded, all but the
 * first use its word, since the dynamic linker binds this name to the first one's for all. By the
 * thread that loads them. */
extern uint64_t multilane_layouts_agreed;
__attribute__((visibility("default"), weak)) uint64_t multilane_layouts_agreed;

/* Of the sizes that this was built for. */
static uint64_t layouts_digest(void)
{
    uint64_t digest = FNV_BEGIN;

    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i)
        digest = fnv(digest, &layouts[i].built, sizeof(layouts[i].built));
    return digest;
}

static bool layout_is_alike(const char *framework, const char *component)
{
    const uint64_t digest = layouts_digest();
    size_t running;

    if (multilane_layouts_agreed == digest)
        return true;
    const struct layout *differs = layout_difference(&running);
    if (differs == NULL) {
        /* Not where a BTL cannot see libmpi, which a program has loaded for itself alone: what
         * others compare is in there. */
        if (dlsym(RTLD_DEFAULT, "ompi_communicator_t_class"))
            multilane_layouts_agreed = digest;
        return true;
    }
    if (named_is_wanted(framework, component)) {
        opal_output(0,
                    "multilane: %s/%s will not load into this Open MPI %s, which %s than the Open "
                    "MPI %s that Multilane was built for: %s is %zu in place of %zu; build "
                    "Multilane for this Open MPI.",
                    framework, component, opal_version_string,
                    strcmp(version_built, opal_version_string) == 0 ? "was built with other options"
                                                                    : "is laid out differently",
                    version_built, differs->symbol, running, differs->built);
    }
    return false;
}

bool version_accepts_running(const char *framework, const char *component)
{
    if (version_compare(version_built, opal_version_string) != VERSION_FOREIGN ||
        untested_is_wanted())
        return layout_is_alike(framework, component);
    /* Printed only in jobs that ask for the component: the plugin is silent in all others. */
    if (named_is_wanted(framework, component)) {
        opal_output(0,
                    "multilane: %s/%s was built for Open MPI %s and will not load into the running "
                    "Open MPI %s, which is of another series or a pre-release; rebuild it for that "
                    "version, or set pml_multilane_untested to 1 to try all the same.",
                    framework, component, version_built, opal_version_string);
    }
    return false;
}

/* "4.1.4 to 4.1.8": the checked releases of the series built for. */
static struct words checked_releases(void)
{
    struct version built_for = {0};
    struct words words = {""};

    (void) version_read(version_built, &built_for);
    for (size_t i = 0; i < sizeof(version_checked) / sizeof(version_checked[0]); ++i)
        if (version_checked[i].major == built_for.major &&
            version_checked[i].minor == built_for.minor)
            words_more(&words, "%s%d.%d.%d to %d.%d.%d", words.text[0] ? ", " : "", built_for.major,
                       built_for.minor, version_checked[i].first_release, built_for.major,
                       built_for.minor, version_checked[i].last_release);
    return words;
}

void version_say_unchecked(void)
{
    if (version_compare(version_built, opal_version_string) != VERSION_OF_SERIES ||
        untested_is_wanted())
        return;
    opal_output(
        0,
        "multilane: Multilane was not checked with this Open MPI %s: it was built for %s and "
        "checked with %s. The sizes of its structures agree, so Multilane is used; set "
        "pml_multilane_untested to 1 to silence this.",
        opal_version_string, version_built, checked_releases().text);
}
