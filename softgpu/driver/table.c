/* The table of all symbols for cuGetProcAddress. They are declared as data here: only their addresses matter. */
#include <stddef.h>

struct symbol {
	const char *name;
	const void *function;
};

const struct symbol *sg_symbols(size_t *ret_count);

#define SYMBOL(name) extern const char name[];
#include "softgpu/driver/symbols.def"
#undef SYMBOL

const struct symbol *sg_symbols(size_t *ret_count)
{
	static const struct symbol symbols[] = {
#define SYMBOL(name) {#name, name},
#include "softgpu/driver/symbols.def"
#undef SYMBOL
	};

	*ret_count = sizeof(symbols) / sizeof(symbols[0]);
	return symbols;
}
