/* Question 10: what cuGetProcAddress gives out. */
#include "probe.h"

#include <dlfcn.h>
#include <string.h>

const char probe_name[] = "lookup";
const char probe_question[] = "Does cuGetProcAddress return the exported functions?";

static const struct {
	const char *symbol, *name;
	int since, threads;
} rows[] = {
#define PLAIN                                                      0
#define PTSZ                                                       1
#define PTDS                                                       1
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds) {#symbol, name, since, flavour},
#include "cuda/symbols.def"
#undef SYMBOL
};

void probe_run(void)
{
	unsigned same = 0, other = 0, absent = 0, refused = 0;
	char names[900] = "";
	void *driver;

	probe_begin();
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	for (size_t i = 0; driver && i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *exported = dlsym(driver, rows[i].symbol), *found = NULL;
		CUresult r = cu.cuGetProcAddress_v2(
			rows[i].name, &found, rows[i].since, rows[i].threads ? 2 : 0, NULL);

		if (!exported)
			absent++;
		else if (r || !found)
			refused++;
		else if (found == exported)
			same++;
		else if (other++ < 20)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s",
				rows[i].symbol);
	}
	probe_value(same, "symbols", "looked up and exported are the same");
	probe_value(other, "symbols", "they differ");
	probe_value(refused, "symbols", "exported and not found by look-up");
	probe_value(absent, "symbols", "not exported");
	probe_answer("%s%s%s", other ? "not always: they differ for" : "yes, wherever both exist",
		names, other > 20 ? " and more" : "");
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
