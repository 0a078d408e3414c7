/* Which handles are alive. Its lock is taken under any other and takes none. */
#pragma once

#include <stdbool.h>

enum sg_kind { SG_STREAM, SG_EVENT, SG_GRAPH, SG_NODE, SG_EXEC };

/* False: no memory. A handle is one kind of thing at a time. */
bool sg_handle_add(const void *handle, enum sg_kind kind);
/* Nothing, if it is none. */
void sg_handle_remove(const void *handle);
bool sg_handle_is(const void *handle, enum sg_kind kind);
