/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the network device of a BTL module, which Open MPI's interface does not tell. A BTL with
 * several devices registers a parameter for each and keeps it in the module: the one kept in
 * this module's btl_bandwidth, say btl_tcp_bandwidth_eth0, names eth0. */
#include "plan/nic.h"

#include <stdlib.h>
#include <string.h>

#include "common/lane/locality.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_group.h"

static struct nic *devices;

/* What follows "bandwidth_" in the parameter's name, or null. */
static const char *device_in(const mca_base_var_t *variable, const mca_btl_base_module_t *btl)
{
    static const char prefix[] = "bandwidth_";
    if ((const void *) variable->mbv_storage != &btl->btl_bandwidth ||
        !variable->mbv_variable_name ||
        strncmp(variable->mbv_variable_name, prefix, sizeof(prefix) - 1) != 0)
        return NULL;
    return variable->mbv_variable_name + sizeof(prefix) - 1;
}

static void name_find(const mca_btl_base_module_t *btl, char *name, size_t size)
{
    const mca_base_component_t *component = &btl->btl_component->btl_version;
    const mca_base_var_group_t *group;
    int index = mca_base_var_group_find(component->mca_project_name, component->mca_type_name,
                                        component->mca_component_name);
    if (index < 0 || mca_base_var_group_get(index, &group) != OPAL_SUCCESS)
        return;
    size_t count = opal_value_array_get_size((opal_value_array_t *) &group->group_vars);
    for (size_t i = 0; i < count; i++) {
        const mca_base_var_t *variable;
        int item = OPAL_VALUE_ARRAY_GET_ITEM(&group->group_vars, int, i);
        if (mca_base_var_get(item, &variable) != OPAL_SUCCESS)
            continue;
        const char *found = device_in(variable, btl);
        if (found) {
            snprintf(name, size, "%s", found);
            return;
        }
    }
}

static void place_fill(struct nic *device)
{
    struct locality place;
    if (!device->name[0])
        return;
    device->link_bytes_s = locality_link(NULL, device->name);
    if (!locality_find(NULL, device->name, &place))
        return;
    device->is_on_bus = true;
    device->bus_bytes_s = locality_bus(NULL, device->name);
    device->card = place.card;
    device->distance = !locality_is_near(place.cpus);
}

const struct nic *nic_of(const mca_btl_base_module_t *btl, const char *name)
{
    struct nic *device = devices;
    while (device && device->btl != btl)
        device = device->next;
    if (device || !(device = calloc(1, sizeof(*device))))
        return device;
    device->btl = btl;
    if (name[0])
        snprintf(device->name, sizeof(device->name), "%s", name);
    else
        name_find(btl, device->name, sizeof(device->name));
    place_fill(device);
    device->next = devices;
    devices = device;
    return device;
}

void nics_fini(void)
{
    while (devices) {
        struct nic *device = devices;
        devices = device->next;
        free(device);
    }
}
