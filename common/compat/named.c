/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a job asked for a component. */
#include "common/compat/named.h"

#include "common/compat/param.h"
#include "common/model/number.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/btl/base/base.h"
#include "opal/util/output.h"

bool named_in_selection(const char *selection, const char *component)
{
    return selection != NULL && selection[0] != '^' && text_list_has(selection, component);
}

bool named_excluded(const char *selection, const char *component)
{
    if (selection == NULL || selection[0] == '\0')
        return false;
    return selection[0] == '^' ? text_list_has(selection + 1, component)
                               : !text_list_has(selection, component);
}

bool named_btl_is_wanted(const char *component)
{
    bool wanted = named_is_wanted("btl", component);

    if (!wanted) {
        opal_output_verbose(10, opal_btl_base_framework.framework_output,
                            "btl/%s: offers no lane, since neither btl names it nor pml multilane",
                            component);
    }
    return wanted;
}

bool named_btl_is_listed(const char *component)
{
    char *selection = param_peek_string("btl", NULL, NULL);
    bool listed = !named_excluded(selection, component);

    free(selection);
    return listed;
}

bool named_btl_is_asked_for(const char *component)
{
    char *selection = param_peek_string("btl", NULL, NULL);
    bool asked_for = named_in_selection(selection, component);

    free(selection);
    return asked_for;
}

/* Of a list Open MPI takes the first, and ignores the others. */
static bool pml_is_multilane(void)
{
    char *selection = param_peek_string("pml", NULL, NULL);
    if (selection)
        selection[strcspn(selection, ",")] = '\0';
    bool is = named_in_selection(selection, "multilane");

    free(selection);
    return is;
}

bool named_is_wanted(const char *framework, const char *component)
{
    if (strcmp(framework, "pml") == 0)
        return pml_is_multilane();
    char *selection = param_peek_string(framework, NULL, NULL);
    bool wanted = named_in_selection(selection, component) ||
                  (strcmp(framework, "btl") == 0 && !named_excluded(selection, component) &&
                   pml_is_multilane());

    free(selection);
    return wanted;
}
