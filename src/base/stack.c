/*
 * Computes stack sizes; see stack.h. glibc's function for this (__pthread_get_minstack) is private.
 * So the sizes of thread-local storage of all loaded libraries are added up. Storage of libraries
 * loaded later is not on the stack, so counting it does no harm.
 */
#include "base/stack.h"

#include <link.h>
#include <unistd.h>

static int add_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	size_t *sum = arg;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

size_t td_stack_bytes(size_t wanted)
{
	size_t tls = 0, page = (size_t)sysconf(_SC_PAGESIZE);

	dl_iterate_phdr(add_tls, &tls);
	return wanted + (tls + page - 1) / page * page;
}
