/* Functions that the files of rehome call in each other, apart from the table of objects. */
#pragma once

#include <stdbool.h>

#include "cuda/symbols.h"
#include "cuda/types.h"

/*
 * td_record_install puts record.c's functions (records) or the driver's into td_real.
 * td_record_has: does record.c have a function for this symbol?
 */
void td_record_install(bool records);
bool td_record_has(unsigned index);

/* adapt.c: puts all adapters into td_real, for good. */
void td_adapt_install(void);

/* Calls td_rehome_sync() if the process has ever moved to another GPU. */
void td_adapt_sync(void);
/* Called before a stream is destroyed: no other thread of the library uses its handle any more. */
void td_adapt_stream_ends(void *stream);

/*
 * places.c. td_place_here: where the program's work for this location runs.
 * td_place_adapter: the adapter of a call with locations; NULL: there is none.
 */
CUmemLocation td_place_here(CUmemLocation location);
void *td_place_adapter(unsigned symbol);
