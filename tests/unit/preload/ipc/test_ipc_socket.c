/* Where an exporter listens: its own file, and nothing where there is no socket of a daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/agent/agent.h"
#include "preload/base/settings.h"
#include "preload/ipc/ipc.h"
#include "test.h"

#define HEX "000102030405060708090a0b0c0d0e0f"

static const uint8_t name[TD_IPC_ID] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static char root[64], path[96];

static void begin(const char *dir)
{
	strcpy(root, "/tmp/tandem-ipc-XXXXXX");
	CHECK(mkdtemp(root));
	CHECK_EQ(chdir(root), 0);
	CHECK_EQ(mkdir(dir, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/" HEX, root, dir);
	snprintf(td_settings.socket, sizeof(td_settings.socket), "%s/s", root);
}

static void end(const char *dir)
{
	CHECK_EQ(rmdir(dir), 0);
	CHECK_EQ(chdir("/"), 0);
	CHECK_EQ(rmdir(root), 0);
	td_settings.socket[0] = 0;
}

TEST(without_a_daemons_socket_no_file_is_looked_at)
{
	struct td_shared_file file;
	struct stat st;
	int fd;

	begin("s.ipc");
	fd = td_ipc_listen(name, TD_IPC_PATH, &file);
	CHECK(fd >= 0);
	CHECK_EQ(rename("s.ipc", ".ipc"), 0);
	td_settings.socket[0] = 0;
	CHECK(!td_ipc_is_there(name, &file));
	td_ipc_remove(name);
	CHECK_EQ(lstat(".ipc/" HEX, &st), 0);
	CHECK_EQ(td_ipc_listen(name, TD_IPC_PATH, &file), -ENOENT);
	CHECK_EQ(lstat(".ipc/" HEX, &st), 0);
	CHECK_EQ(unlink(".ipc/" HEX), 0);
	end(".ipc");
	close(fd);
}

TEST(a_file_that_has_its_name_is_not_its_own)
{
	struct td_shared_file file, other;
	int fd, thief;

	begin("s.ipc");
	fd = td_ipc_listen(name, TD_IPC_PATH, &file);
	CHECK(fd >= 0 && td_ipc_is_there(name, &file));
	/* The first file is kept, so that the second is not given its number. */
	CHECK_EQ(rename(path, "old"), 0);
	CHECK(!td_ipc_is_there(name, &file));
	thief = td_ipc_listen(name, TD_IPC_PATH, &other);
	CHECK(thief >= 0 && td_ipc_is_there(name, &other) && !td_ipc_is_there(name, &file));
	td_ipc_remove(name);
	CHECK(!td_ipc_is_there(name, &other));
	CHECK_EQ(mkdir(path, 0700), 0); /* what cannot be removed */
	CHECK_EQ(td_ipc_listen(name, TD_IPC_PATH, &other), -EADDRINUSE);
	CHECK_EQ(rmdir(path), 0);
	CHECK_EQ(unlink("old"), 0);
	close(fd), close(thief);
	end("s.ipc");
}

static unsigned count_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

TEST(where_nobody_listens_no_descriptor_stays)
{
	unsigned before;

	begin("s.ipc");
	before = count_descriptors();
	CHECK(td_ipc_connect(name) < 0);
	CHECK_EQ(count_descriptors(), before);
	end("s.ipc");
}
