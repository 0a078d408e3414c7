/*
 * The set of live handles. Its lock is a leaf: it may be taken under any other lock, and no lock is
 * taken under it.
 */
#pragma once

#include <stdbool.h>

enum sg_kind { SG_STREAM, SG_EVENT, SG_GRAPH, SG_NODE, SG_EXEC };

/* Registers a handle, which has one kind at a time. Returns false if there is no memory. */
bool sg_handle_add(const void *handle, enum sg_kind kind);
/* Does nothing if the handle is not registered. */
void sg_handle_remove(const void *handle);
bool sg_handle_is(const void *handle, enum sg_kind kind);
