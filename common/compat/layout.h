/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the structures of the running Open MPI with those that this was compiled for: its
 * options (debug, CUDA, fault tolerance, 16-byte swap) change them, and the version does not tell.
 * configure compiles this too, to find out which options an installation was built with. */
#ifndef MULTILANE_COMPAT_LAYOUT_H
#define MULTILANE_COMPAT_LAYOUT_H

#include "ompi_config.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/compat/coll.h"
#include "common/compat/pml.h"
#include "opal/class/opal_bitmap.h"
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_lifo.h"
#include "opal/class/opal_pointer_array.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/util/info_subscriber.h"
#include "opal/util/proc.h"

struct layout {
    const char *symbol;
    enum {
        LAYOUT_IN_CLASS, /* the class holds the size of its objects */
        LAYOUT_OF_SYMBOL,
        LAYOUT_IN_FLAG /* a bool whose first value is one of configure's answers */
    } where;
    size_t built;
};

#define LAYOUT_CLASS(type)                                                                         \
    {                                                                                              \
        .symbol = #type "_class", LAYOUT_IN_CLASS, sizeof(type)                                    \
    }

static const struct layout layouts[] = {
    LAYOUT_CLASS(opal_object_t),
    LAYOUT_CLASS(opal_list_item_t),
    LAYOUT_CLASS(opal_list_t),
    LAYOUT_CLASS(opal_lifo_t),
    LAYOUT_CLASS(opal_free_list_t),
    LAYOUT_CLASS(opal_free_list_item_t),
    LAYOUT_CLASS(opal_mutex_t),
    LAYOUT_CLASS(opal_bitmap_t),
    LAYOUT_CLASS(opal_pointer_array_t),
    LAYOUT_CLASS(opal_hash_table_t),
    LAYOUT_CLASS(opal_convertor_t),
    LAYOUT_CLASS(opal_datatype_t),
    LAYOUT_CLASS(opal_proc_t),
    LAYOUT_CLASS(opal_infosubscriber_t),
    LAYOUT_CLASS(ompi_communicator_t),
    LAYOUT_CLASS(ompi_group_t),
    LAYOUT_CLASS(ompi_proc_t),
    LAYOUT_CLASS(ompi_request_t),
    LAYOUT_CLASS(ompi_message_t),
    LAYOUT_CLASS(ompi_datatype_t),
    LAYOUT_CLASS(ompi_errhandler_t),
    LAYOUT_CLASS(mca_pml_base_request_t),
    LAYOUT_CLASS(mca_pml_base_send_request_t),
    LAYOUT_CLASS(mca_pml_base_recv_request_t),
    LAYOUT_CLASS(mca_coll_base_module_t),
    LAYOUT_CLASS(ompi_coll_base_nbc_request_t),
    LAYOUT_CLASS(mca_bml_base_endpoint_t),
    LAYOUT_CLASS(mca_bml_base_btl_array_t),
    LAYOUT_CLASS(mca_btl_base_descriptor_t),
    LAYOUT_CLASS(mca_rcache_base_registration_t),
    LAYOUT_CLASS(mca_base_pvar_t),
    LAYOUT_CLASS(mca_base_var_t),
    {"mca_pml", LAYOUT_OF_SYMBOL, sizeof(mca_pml_base_module_t)},
    {"mca_bml", LAYOUT_OF_SYMBOL, sizeof(mca_bml_base_module_t)},
    {"mca_pml_base_selected_component", LAYOUT_OF_SYMBOL, sizeof(mca_pml_base_component_t)},
    {"mca_btl_self", LAYOUT_OF_SYMBOL, sizeof(mca_btl_base_module_t)},
    {"mca_btl_base_active_message_trigger", LAYOUT_OF_SYMBOL,
     sizeof(mca_btl_active_message_callback_t) * MCA_BTL_TAG_MAX},
    {"opal_btl_base_framework", LAYOUT_OF_SYMBOL, sizeof(mca_base_framework_t)},
    {"opal_process_info", LAYOUT_OF_SYMBOL, sizeof(opal_process_info_t)},
    {"ompi_request_empty", LAYOUT_OF_SYMBOL, sizeof(ompi_request_t)},
    {"opal_built_with_cuda_support", LAYOUT_IN_FLAG, OPAL_CUDA_SUPPORT},
    {"ompi_use_sparse_group_storage", LAYOUT_IN_FLAG, OMPI_GROUP_SPARSE},
};

static inline size_t layout_running(const struct layout *row, const void *symbol)
{
    const ElfW(Sym) *entry = NULL;
    Dl_info unused;

    switch (row->where) {
    case LAYOUT_IN_CLASS:
        return ((const opal_class_t *) symbol)->cls_sizeof;
    case LAYOUT_IN_FLAG:
        return *(const bool *) symbol;
    default:
        if (dladdr1(symbol, &unused, (void **) &entry, RTLD_DL_SYMENT) && entry != NULL)
            return entry->st_size;
        return row->built;
    }
}

/* The first row that differs, with its value in the running Open MPI; null: none. What a library
 * does not export is not compared: 4.1 keeps btl/self in a file of its own. */
static inline const struct layout *layout_difference(size_t *running)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
        const void *symbol = dlsym(RTLD_DEFAULT, layouts[i].symbol);

        *running = symbol == NULL ? layouts[i].built : layout_running(&layouts[i], symbol);
        if (*running != layouts[i].built)
            return &layouts[i];
    }
    return NULL;
}

#endif
