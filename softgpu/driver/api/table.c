/*
 * The address of every exported symbol, for cuGetProcAddress. The symbols are declared as data
 * because only their addresses are used.
 */
const void *const *sg_functions(void);

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds) extern const char symbol[];
#include "cuda/symbols.def"
#undef SYMBOL

const void *const *sg_functions(void)
{
	static const void *const functions[] = {
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds) symbol,
#include "cuda/symbols.def"
#undef SYMBOL
	};

	return functions;
}
