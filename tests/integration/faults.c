/*
 * Linked into libtandem_faulty.so instead of what the C library has: of the library's own requests
 * for host memory the one that TANDEM_TEST_FAULT counts to fails, once in a process. At its end a
 * process adds a line to the file TANDEM_TEST_FAULT_LOG: how many there were.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static _Atomic long requests;

static bool fails(void)
{
	const char *text = getenv("TANDEM_TEST_FAULT");

	if (atomic_fetch_add(&requests, 1) + 1 != (text ? atol(text) : 0))
		return false;
	errno = ENOMEM;
	return true;
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("TANDEM_TEST_FAULT_LOG");
	FILE *file = path ? fopen(path, "a") : NULL;

	if (!file)
		return;
	fprintf(file, "%ld\n", atomic_load(&requests));
	fclose(file);
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return fails() ? NULL : __real_realloc(old, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return fails() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, offset);
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return fails() ? MAP_FAILED : __real_mmap64(at, bytes, protection, flags, fd, offset);
}
