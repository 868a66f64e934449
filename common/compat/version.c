/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds the version and the layouts of the running Open MPI against those compiled for. */
#include "common/compat/version.h"

#include "common/compat/compat.h"
#include "common/compat/layout.h"
#include "common/compat/named.h"
#include "common/compat/param.h"

#include <stdio.h>
#include <string.h>

#include "opal/runtime/opal.h"
#include "opal/util/output.h"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

const char *const version_built =
    TEXT(OPAL_MAJOR_VERSION) "." TEXT(OPAL_MINOR_VERSION) "." TEXT(OPAL_RELEASE_VERSION)
        OPAL_GREEK_VERSION;

/* Releases between which no structure that a PML or a BTL touches changed its layout: read from
 * the sources of each. A series without a row is compatible only with the very version built for
 * (6.0 had no final release when this was written). The same rows as in config/ompi-headers.sh. */
static const struct {
    int major, minor, first_release, last_release;
} version_alike[] = {
    {4, 1, 4, 8},
    {5, 0, 7, 11},
};

struct version {
    int major, minor, release;
};

/* False for anything but three numbers with nothing behind them: a pre-release is like no other. */
static bool version_read(const char *text, struct version *version)
{
    int end = 0;

    return sscanf(text, "%d.%d.%d%n", &version->major, &version->minor, &version->release, &end) ==
               3 &&
           text[end] == '\0';
}

/* The row of version_alike that `version` belongs to, or -1. */
static int version_row(const struct version *version)
{
    for (size_t i = 0; i < sizeof(version_alike) / sizeof(version_alike[0]); ++i) {
        if (version->major == version_alike[i].major && version->minor == version_alike[i].minor &&
            version->release >= version_alike[i].first_release &&
            version->release <= version_alike[i].last_release)
            return (int) i;
    }
    return -1;
}

bool version_is_compatible(const char *built, const char *running)
{
    struct version built_for, found;

    if (strcmp(built, running) == 0)
        return true;
    if (!version_read(built, &built_for) || !version_read(running, &found))
        return false;
    return version_row(&built_for) >= 0 && version_row(&built_for) == version_row(&found);
}

static bool layout_is_alike(const char *framework, const char *component)
{
    size_t running;
    const struct layout *differs = layout_difference(&running);

    if (differs == NULL)
        return true;
    if (named_is_wanted(framework, component)) {
        opal_output(0,
                    "multilane: %s/%s will not load into this Open MPI %s, which was built with "
                    "other options than the one that Multilane was built for: %s is %zu in place "
                    "of %zu; build Multilane for this Open MPI.",
                    framework, component, opal_version_string, differs->symbol, running,
                    differs->built);
    }
    return false;
}

bool version_accepts_running(const char *framework, const char *component)
{
    if (version_is_compatible(version_built, opal_version_string) ||
        param_peek_int("pml", "multilane", "untested", 0) != 0)
        return layout_is_alike(framework, component);
    /* Printed only in jobs that ask for the component: the plugin is silent in all others. */
    if (named_is_wanted(framework, component)) {
        opal_output(0,
                    "multilane: %s/%s was built for Open MPI %s and will not load into the running "
                    "Open MPI %s, whose insides may be laid out differently; rebuild it for that "
                    "version, or set pml_multilane_untested to 1 to try all the same.",
                    framework, component, version_built, opal_version_string);
    }
    return false;
}
