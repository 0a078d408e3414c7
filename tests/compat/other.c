/*
 * Another preload that interposes dlsym, as profilers and other interposers do; counts the look-ups
 * that it passes on.
 */
#include <dlfcn.h>

#define API __attribute__((visibility("default")))

extern int other_count;
API int other_count;
API void *dlsym(void *restrict handle, const char *restrict name);

void *dlsym(void *restrict handle, const char *restrict name)
{
	static void *(*next)(void *, const char *);

	if (!next) {
		*(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
		if (!next)
			*(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	}
	other_count++;
	return next(handle, name);
}
