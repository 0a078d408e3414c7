/* Question 23: what the machine lets a process have. */
#include "probe.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

const char probe_name[] = "limits";
const char probe_question[] = "How much pinned host memory, locked memory, shared memory and how "
			      "many descriptors may a process have?";

static double limit_of(int which)
{
	struct rlimit limit;

	if (getrlimit(which, &limit))
		return -1;
	return limit.rlim_cur == RLIM_INFINITY ? -1 : (double)limit.rlim_cur;
}

/* Pinned memory by pieces, up to an eighth of the machine's. */
static double pinned_mib(void)
{
	uint64_t most = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 8,
		 piece = probe_quick ? 1u << 20 : 256u << 20, got = 0;
	void *pieces[1024];
	unsigned n = 0;

	if (probe_quick)
		most = 4u << 20;
	while (n < 1024 && got < most && !cu.cuMemHostAlloc(&pieces[n], piece, 0)) {
		got += piece;
		n++;
	}
	while (n)
		(void)cu.cuMemFreeHost(pieces[--n]);
	return (double)got / 1048576;
}

void probe_run(void)
{
	struct statvfs shm;

	probe_value(limit_of(RLIMIT_MEMLOCK), "bytes", "locked memory, soft limit (-1: none)");
	probe_value(limit_of(RLIMIT_NOFILE), "descriptors", "open files, soft limit (-1: none)");
	probe_value((double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1073741824,
		"GiB", "memory of the host");
	if (!statvfs("/dev/shm", &shm))
		probe_value((double)shm.f_bavail * (double)shm.f_frsize / 1073741824, "GiB",
			"free in /dev/shm");
	if (probe_begin_quietly())
		probe_answer("no GPU: pinned memory was not tried");
	probe_value(
		pinned_mib(), "MiB", "pinned at once (tried up to an eighth of the host's memory)");
	probe_answer("measured");
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
