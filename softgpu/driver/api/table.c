/* The address of every symbol, for cuGetProcAddress. They are declared as data here: only their addresses matter. */
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
