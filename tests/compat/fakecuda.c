/*
 * A driver of a few symbols, which shows who answers a look-up. Its symbols have a version, for
 * dlvsym.
 */
#include <stdint.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

API int cuInit(unsigned flags)
{
	return (int)flags;
}

API int cuLaunchKernel(void)
{
	return 4;
}

API int cuLaunchKernel_ptsz(void)
{
	return 5;
}

API int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

API int cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *status)
{
	(void)version;
	*ret = !strcmp(name, "cuLaunchKernel")
		       ? (flags & 2 ? (void *)cuLaunchKernel_ptsz : (void *)cuLaunchKernel)
		       : NULL;
	if (status)
		*status = *ret ? 0 : 1;
	return *ret ? 0 : 500;
}
