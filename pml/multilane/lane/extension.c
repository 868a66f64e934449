/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the extension of a BTL of ours among the symbols of its component. */
#include "lane/extension.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "common/model/lane.h"

const struct multilane_extension *lane_extension_named(const char *btl)
{
    char symbol[128];
    snprintf(symbol, sizeof(symbol), MULTILANE_EXTENSION_SYMBOL_FORMAT, btl);
    const struct multilane_extension *extension = dlsym(RTLD_DEFAULT, symbol);
    return extension && extension->version == MULTILANE_EXTENSION_VERSION &&
                   extension->struct_bytes >= sizeof(*extension)
               ? extension
               : NULL;
}

/* Looking a symbol up takes as long as all else of a contact, so the last answers are kept; a
 * component that was closed and opened anew may lie elsewhere. Under multilane.lock, or before
 * there are other threads. */
const struct multilane_extension *lane_extension_of(const mca_btl_base_module_t *btl)
{
    static struct {
        const mca_btl_base_component_t *component;
        const struct multilane_extension *extension;
    } known[MODEL_LANES_MAX];
    static unsigned next;

    for (unsigned i = 0; i < MODEL_LANES_MAX; i++)
        if (known[i].component == btl->btl_component && known[i].component)
            return known[i].extension;
    unsigned at = next++ % MODEL_LANES_MAX;
    known[at].component = btl->btl_component;
    known[at].extension = lane_extension_named(btl->btl_component->btl_version.mca_component_name);
    return known[at].extension;
}

bool btl_is_of_sockets(const mca_btl_base_module_t *btl)
{
    const struct multilane_extension *extension = lane_extension_of(btl);
    return extension ? extension->round_trip_s != NULL
                     : strcmp(btl->btl_component->btl_version.mca_component_name, "tcp") == 0;
}
