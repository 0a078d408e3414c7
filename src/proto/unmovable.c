/* Words for the reasons not to move; see unmovable.h. */
#include "proto/unmovable.h"

_Static_assert(TD_UNMOVABLE_N <= 64, "a bit each");

const char *td_unmovable_words(uint64_t mask)
{
	static const char *const words[TD_UNMOVABLE_N] = {
#define UNMOVABLE(id, text) [TD_UNMOVABLE_BIT_##id] = text,
#include "proto/unmovable.def"
#undef UNMOVABLE
	};

	for (unsigned i = 0; i < TD_UNMOVABLE_N; i++)
		if (mask >> i & 1)
			return words[i];
	return "it does not say why";
}
