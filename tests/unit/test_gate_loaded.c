/* Files with code that a process has mapped: what it maps here is a copy of its own program, under names that nothing else has. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/loaded.h"
#include "test.h"

#define BYTES 4096

static const char *wanted;
static char directory[64], path[512];

static bool is_wanted(const char *name)
{
	return !strncmp(name, wanted, strlen(wanted));
}

/* Its name in the directory; NULL: it cannot be mapped so. */
static void *map_file(const char *name, int protection)
{
	void *at;
	int fd;

	strcpy(directory, "/tmp/tandem-loaded-XXXXXX");
	if (!mkdtemp(directory))
		return NULL;
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0700);
	if (fd < 0 || ftruncate(fd, BYTES))
		return NULL;
	at = mmap(NULL, BYTES, protection, MAP_PRIVATE, fd, 0);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static void unmap_file(void *at)
{
	munmap(at, BYTES);
	unlink(path);
	rmdir(directory);
}

TEST(what_is_mapped_to_be_run_is_found_by_the_beginning_of_its_name)
{
	void *at = map_file("libwanted-5f.so.1", PROT_READ | PROT_EXEC);
	char name[64] = "";

	CHECK(at);
	wanted = "libwanted";
	errno = 77;
	CHECK(td_loaded_find(is_wanted, name, sizeof(name)));
	CHECK_EQ(errno, 77);
	CHECK_STR(name, "libwanted-5f.so.1");
	unmap_file(at);
	CHECK(!td_loaded_find(is_wanted, name, sizeof(name)));
}

TEST(what_is_mapped_to_be_read_is_not)
{
	void *at = map_file("libwanted.so", PROT_READ);
	char name[64] = "";

	CHECK(at);
	wanted = "libwanted";
	CHECK(!td_loaded_find(is_wanted, name, sizeof(name)));
	unmap_file(at);
}

TEST(directories_are_no_names)
{
	void *at = map_file("libother.so", PROT_READ | PROT_EXEC);
	char name[64] = "";

	CHECK(at);
	wanted = "tandem-loaded";
	CHECK(!td_loaded_find(is_wanted, name, sizeof(name)));
	unmap_file(at);
}

TEST(what_is_deleted_has_its_name)
{
	void *at = map_file("lib wanted.so", PROT_READ | PROT_EXEC);
	char name[64] = "";

	CHECK(at);
	unlink(path);
	wanted = "lib wanted";
	CHECK(td_loaded_find(is_wanted, name, sizeof(name)));
	CHECK_STR(name, "lib wanted.so");
	unmap_file(at);
}

TEST(long_names_are_cut)
{
	char given[201], name[16] = "";
	void *at;

	memset(given, 'x', 200);
	given[200] = '\0';
	at = map_file(given, PROT_READ | PROT_EXEC);
	CHECK(at);
	wanted = "xxxxx";
	CHECK(td_loaded_find(is_wanted, name, sizeof(name)));
	CHECK_STR(name, "xxxxxxxxxxxxxxx");
	unmap_file(at);
}
