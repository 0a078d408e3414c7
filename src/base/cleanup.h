/* Scope-bound ownership: td_auto_* variables release what they hold when they leave scope. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

static inline void td_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void td_cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define td_auto_free  __attribute__((cleanup(td_cleanup_free)))
#define td_auto_close __attribute__((cleanup(td_cleanup_close)))

/* Hands a pointer or descriptor over to a new owner and disarms the variable's cleanup. */
#define td_steal(ptr)                                                                              \
	({                                                                                         \
		typeof(*(ptr)) td_stolen_ = *(ptr);                                                \
		*(ptr) = NULL;                                                                     \
		td_stolen_;                                                                        \
	})

static inline int td_steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}
