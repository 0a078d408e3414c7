/*
 * Host pages that stand for GPU memory.
 * Unmapping takes the kernel 0.1 us per page, and several us on a busy machine: 50 ms per GiB,
 * which a GPU would not need. So a thread unmaps in the background, and whoever frees memory does
 * not wait. A forked child does not have this thread and unmaps at once.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/stack.h"
#include "softgpu/driver/driver.h"

#define LATER_BYTES ((uint64_t)1 << 20) /* smaller blocks are unmapped at once */
#define STACK_BYTES ((size_t)64 << 10)

/*
 * Pages to be unmapped. `retired` has pages that were freed while a kernel or copy ran, which may
 * still access them (on a real GPU it would only read garbage). `later` has pages that were handed
 * to the thread.
 */
struct retired {
	struct retired *next;
	void *pages;
	uint64_t bytes;
};

/* All of these but reaper_pid are guarded by the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static struct retired *retired, *later;
static unsigned running;
static _Atomic pid_t reaper_pid; /* the process that has the thread; 0: not started */

void *sg_pages_new(uint64_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static void unmap_all(struct retired *gone)
{
	while (gone) {
		struct retired *next = gone->next;

		munmap(gone->pages, gone->bytes);
		free(gone);
		gone = next;
	}
}

static void *reap(void *unused)
{
	for (;;) {
		struct retired *gone;

		pthread_mutex_lock(&lock);
		while (!later)
			pthread_cond_wait(&given, &lock);
		gone = later;
		later = NULL;
		pthread_mutex_unlock(&lock);
		unmap_all(gone);
	}
	return unused;
}

/*
 * Starts the thread if necessary. Called with the lock held. The thread blocks all signals, because
 * they are meant for the program's threads. Returns false if this process has no such thread.
 */
static bool is_reaped(void)
{
	pid_t pid = getpid(), of = atomic_load(&reaper_pid);
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	bool made;

	if (of)
		return of == pid;
	if (pthread_attr_init(&attributes))
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	made = !pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) &&
	       !pthread_attr_setstacksize(&attributes, td_stack_bytes(STACK_BYTES)) &&
	       !pthread_create(&thread, &attributes, reap, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (made)
		atomic_store(&reaper_pid, pid);
	return made;
}

void sg_pages_free(void *pages, uint64_t bytes)
{
	struct retired *entry = NULL;

	pthread_mutex_lock(&lock);
	if (running || (bytes >= LATER_BYTES && is_reaped()))
		entry = malloc(sizeof(*entry));
	if (entry && running) {
		*entry = (struct retired){retired, pages, bytes};
		retired = entry;
		(void)madvise(pages, bytes, MADV_DONTNEED);
	} else if (entry) {
		*entry = (struct retired){later, pages, bytes};
		later = entry;
		pthread_cond_signal(&given);
	} else if (!running) {
		munmap(pages, bytes);
	} /* else: no memory for the list entry; the pages are leaked, as they may be in use */
	pthread_mutex_unlock(&lock);
}

void sg_pages_enter(void)
{
	pthread_mutex_lock(&lock);
	running++;
	pthread_mutex_unlock(&lock);
}

void sg_pages_leave(void)
{
	struct retired *gone = NULL;

	pthread_mutex_lock(&lock);
	if (!--running) {
		gone = retired;
		retired = NULL;
	}
	pthread_mutex_unlock(&lock);
	unmap_all(gone);
}
