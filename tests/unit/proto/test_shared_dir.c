/* Sockets of programs that share memory, by their paths. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/shared_dir.h"
#include "test.h"

#define NAME "0123456789abcdef0123456789abcdef"

static char root[] = "/tmp/tandem-shared-XXXXXX";

static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET, 0);
}

/* Taken, used and removed. */
static void try_in(const char *dir)
{
	int listener = new_socket(), client = new_socket();
	char path[512];
	struct td_shared_file file;
	struct stat st;

	CHECK_EQ(mkdir(dir, 0700), 0);
	CHECK_EQ(td_shared_find(dir, NAME, &file), -ENOENT);
	CHECK_EQ(td_shared_connect(client, dir, NAME), -ENOENT);
	CHECK_EQ(td_shared_bind(listener, dir, NAME), 0);
	CHECK_EQ(td_shared_find(dir, NAME, &file), 0);
	CHECK_EQ(td_shared_connect(client, dir, NAME), -ECONNREFUSED);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(td_shared_connect(client, dir, NAME), 0);
	snprintf(path, sizeof(path), "%s/" NAME, dir);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK(file.device == st.st_dev && file.inode == st.st_ino);
	td_shared_remove(dir, NAME);
	CHECK_EQ(td_shared_find(dir, NAME, &file), -ENOENT);
	CHECK_EQ(symlink("/dev/null", path), 0);
	CHECK_EQ(td_shared_find(dir, NAME, &file), -EPERM);
	td_shared_remove(dir, NAME);
	CHECK_EQ(rmdir(dir), 0);
	close(listener);
	close(client);
}

TEST(a_socket_is_its_owners_alone_from_the_moment_it_is_there)
{
	char dir[128];
	mode_t mask = umask(0);

	CHECK(mkdtemp(root));
	snprintf(dir, sizeof(dir), "%s/s.ipc", root);
	try_in(dir);
	umask(mask);
	CHECK_EQ(rmdir(root), 0);
}

TEST(a_directory_may_be_deeper_than_an_address_is_long)
{
	char above[112], dir[128];

	strcpy(root + sizeof(root) - 7, "XXXXXX");
	CHECK(mkdtemp(root));
	snprintf(above, sizeof(above), "%s/%.80d", root, 0);
	CHECK_EQ(mkdir(above, 0700), 0);
	snprintf(dir, sizeof(dir), "%s/s.ipc", above);
	try_in(dir);
	CHECK_EQ(rmdir(above), 0);
	CHECK_EQ(rmdir(root), 0);
}

TEST(the_directory_is_beside_the_socket)
{
	char buf[TD_SHARED_DIR_MAX], small[8];

	CHECK_STR(td_shared_dir(buf, sizeof(buf), "/run/tandem/socket"), "/run/tandem/socket.ipc");
	CHECK(!td_shared_dir(small, sizeof(small), "/run/tandem/socket"));
}

TEST(a_socket_of_another_user_is_not_ours)
{
	char dir[128], path[192];
	struct td_shared_file file;
	int fd = new_socket();

	if (geteuid())
		SKIP("giving a file away takes root");
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	CHECK(mkdtemp(root));
	snprintf(dir, sizeof(dir), "%s", root);
	CHECK_EQ(td_shared_bind(fd, dir, NAME), 0);
	CHECK_EQ(td_shared_find(dir, NAME, &file), 0);
	snprintf(path, sizeof(path), "%s/" NAME, dir);
	CHECK_EQ(chown(path, 65534, 65534), 0);
	CHECK_EQ(td_shared_find(dir, NAME, &file), -EPERM);
	td_shared_remove(dir, NAME);
	CHECK_EQ(rmdir(root), 0);
	close(fd);
}
