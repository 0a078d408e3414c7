/* The parts of rehome to each other, beside the table of objects. */
#pragma once

#include <stdbool.h>

#include "cuda/symbols.h"
#include "cuda/types.h"

/* record.c: its functions in td_real, or the driver's. Does it have this symbol? */
void td_record_install(bool records);
bool td_record_has(unsigned index);

/* adapt.c: all others, from now on. */
void td_adapt_install(void);

/* Once the process has moved: td_rehome_sync. */
void td_adapt_sync(void);
/* A twin of a stream ends: nobody names it any more. */
void td_adapt_stream_ends(void *stream);
