/*
 * Reaches cuLaunchKernel by one of the ways that programs use, which its argument names, and prints
 * whose function it got: "libtandem", "driver" or "nothing".
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int cuLaunchKernel(void);
int cuLaunchKernel_ptsz(void);

typedef int (*get_fn)(const char *name, void **ret, int version, uint64_t flags, int *status);

static void *driver(int flags)
{
	return dlopen("libcuda.so.1", RTLD_NOW | flags);
}

static void *linked(void)
{
	return (void *)cuLaunchKernel;
}

static void *linked_threads(void)
{
	return (void *)cuLaunchKernel_ptsz;
}

static void *by_dlsym(void)
{
	return dlsym(driver(0), "cuLaunchKernel");
}

static void *by_dlsym_of_dlsym(void)
{
	void *(*look)(void *, const char *);

	*(void **)&look = dlsym(RTLD_DEFAULT, "dlsym");
	return look ? look(driver(0), "cuLaunchKernel") : NULL;
}

/* The library's own, not that which comes first. */
static void *by_dlsym_of_libc(void)
{
	void *(*look)(void *, const char *), *libc = dlopen("libc.so.6", RTLD_LAZY);

	*(void **)&look = libc ? dlsym(libc, "dlsym") : NULL;
	return look ? look(driver(0), "cuLaunchKernel") : NULL;
}

/* With a version, as ours has none. glibc's, from 2.2.5 or, of other processors, later. */
static void *by_dlsym_of_dlvsym(void)
{
	void *(*look)(void *, const char *);

	*(void **)&look = dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5");
	return look ? look(driver(0), "cuLaunchKernel") : NULL;
}

static void *by_default(void)
{
	return dlsym(RTLD_DEFAULT, "cuLaunchKernel");
}

static void *by_dlvsym(void)
{
	return dlvsym(driver(0), "cuLaunchKernel", "DRIVER_1");
}

static void *deepbind(void)
{
	return dlsym(driver(RTLD_DEEPBIND), "cuLaunchKernel");
}

static void *of_plugin(void *plugin)
{
	void *(*launch)(void) = NULL;

	if (plugin)
		*(void **)&launch = dlsym(plugin, "plugin_launch");
	return launch ? launch() : NULL;
}

static void *plugin(void)
{
	return of_plugin(dlopen("libplugin.so", RTLD_NOW));
}

static void *plugin_deepbind(void)
{
	return of_plugin(dlopen("libplugin.so", RTLD_NOW | RTLD_DEEPBIND));
}

static void *plugin_namespace(void)
{
	return of_plugin(dlmopen(LM_ID_NEWLM, "libplugin.so", RTLD_NOW));
}

static void *proc_address(const char *name, uint64_t flags)
{
	get_fn get;
	void *found = NULL, *none = NULL;

	*(void **)&get = dlsym(driver(0), "cuGetProcAddress_v2");
	/* As cudart does: first an empty name, of version 0. */
	if (!get || !get("", &none, 0, 0, NULL) || get(name, &found, 13000, flags, NULL))
		return NULL;
	return found;
}

static void *by_proc_address(void)
{
	return proc_address("cuLaunchKernel", 0);
}

static void *by_proc_address_threads(void)
{
	return proc_address("cuLaunchKernel", 2);
}

static void *absent(void)
{
	return dlsym(driver(0), "cuGraphLaunch");
}

static const struct {
	const char *name;
	void *(*reach)(void);
} ways[] = {
	{"linked", linked},
	{"linked_threads", linked_threads},
	{"dlsym", by_dlsym},
	{"dlsym_of_dlsym", by_dlsym_of_dlsym},
	{"dlsym_of_libc", by_dlsym_of_libc},
	{"dlsym_of_dlvsym", by_dlsym_of_dlvsym},
	{"default", by_default},
	{"dlvsym", by_dlvsym},
	{"deepbind", deepbind},
	{"plugin", plugin},
	{"plugin_deepbind", plugin_deepbind},
	{"plugin_namespace", plugin_namespace},
	{"proc_address", by_proc_address},
	{"proc_address_threads", by_proc_address_threads},
	{"absent", absent},
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc == 2 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		Dl_info info = {0};
		void *found;

		if (strcmp(argv[1], ways[i].name))
			continue;
		found = ways[i].reach();
		if (!found || !dladdr(found, &info))
			puts("nothing");
		else
			puts(strstr(info.dli_fname, "libtandem") ? "libtandem" : "driver");
		return 0;
	}
	return 2;
}
