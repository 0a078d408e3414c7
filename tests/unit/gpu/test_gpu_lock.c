/*
 * The lock of a GPU: it has one holder, ends with it, and cannot be gained by tricks in a directory
 * that all can write.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/uuid.h"
#include "gpu/lock.h"

static const uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static char root[64], path[128], name[41];

static int begin(void)
{
	int fd;

	strcpy(root, "/tmp/tandem-lock-XXXXXX");
	CHECK(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/locks", root);
	td_uuid_format(name, uuid);
	fd = td_gpu_locks_open(path);
	CHECK(fd >= 0);
	return fd;
}

static void end(int directory)
{
	(void)unlinkat(directory, name, 0);
	close(directory);
	CHECK_EQ(rmdir(path), 0); /* nothing else was left in it */
	CHECK_EQ(rmdir(root), 0);
}

TEST(the_second_is_refused_and_told_who_has_it)
{
	int directory = begin(), fd;
	struct td_gpu_owner owner = {0};

	CHECK_EQ(td_gpu_lock_owner(directory, name, &owner), TD_GPU_LOCK_FREE);
	fd = td_gpu_lock_take(directory, uuid, "/run/with a blank/socket", &owner);
	CHECK(fd >= 0);
	CHECK_EQ(td_gpu_lock_take(directory, uuid, "/other", &owner), -EBUSY);
	CHECK_EQ(owner.pid, getpid());
	CHECK_EQ(owner.uid, geteuid());
	CHECK_STR(owner.socket, "/run/with a blank/socket");
	memset(&owner, 0, sizeof(owner));
	CHECK_EQ(td_gpu_lock_owner(directory, name, &owner), 0);
	CHECK_EQ(owner.pid, getpid());
	td_gpu_lock_release(directory, uuid, fd);
	CHECK_EQ(td_gpu_lock_owner(directory, name, &owner), TD_GPU_LOCK_FREE);
	CHECK_EQ(faccessat(directory, name, F_OK, 0), -1);
	end(directory);
}

TEST(the_lock_of_a_dead_daemon_is_free)
{
	int directory = begin(), fd, status, ready[2];
	struct td_gpu_owner owner;
	char byte;
	pid_t pid;

	CHECK_EQ(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		byte = td_gpu_lock_take(directory, uuid, "/a/longer/name/than/the/next", &owner) >=
		       0;
		(void)!write(ready[1], &byte, 1);
		pause();
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	CHECK_EQ(byte, 1);
	CHECK_EQ(td_gpu_lock_take(directory, uuid, "/b", &owner), -EBUSY);
	CHECK_EQ(owner.pid, pid);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	fd = td_gpu_lock_take(directory, uuid, "/b", &owner);
	CHECK(fd >= 0);
	CHECK_EQ(td_gpu_lock_owner(directory, name, &owner), 0);
	CHECK_EQ(owner.pid, getpid());
	CHECK_STR(owner.socket, "/b");
	td_gpu_lock_release(directory, uuid, fd);
	end(directory);
}

TEST(a_file_that_was_taken_away_while_it_was_locked_counts_for_nothing)
{
	int directory = begin(), old, fd;
	struct td_gpu_owner owner;

	/*
	 * Locks belong to files: the lock of the old file must not block the new one, nor appear
	 * to.
	 */
	old = td_gpu_lock_take(directory, uuid, "/old", &owner);
	CHECK(old >= 0);
	CHECK_EQ(unlinkat(directory, name, 0), 0);
	fd = td_gpu_lock_take(directory, uuid, "/new", &owner);
	CHECK(fd >= 0);
	CHECK_EQ(td_gpu_lock_take(directory, uuid, "/third", &owner), -EBUSY);
	CHECK_STR(owner.socket, "/new");
	close(old);
	td_gpu_lock_release(directory, uuid, fd);
	end(directory);
}

TEST(links_and_other_things_are_not_followed)
{
	int directory = begin();
	struct td_gpu_owner owner;
	char victim[160];
	int fd;

	snprintf(victim, sizeof(victim), "%s/victim", root);
	fd = open(victim, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK_EQ(write(fd, "precious", 8), 8);
	CHECK_EQ(symlinkat(victim, directory, name), 0);
	CHECK_EQ(td_gpu_lock_take(directory, uuid, "/a", &owner), -ELOOP);
	CHECK_EQ(td_gpu_lock_owner(directory, name, &owner), -ELOOP);
	CHECK_EQ(unlinkat(directory, name, 0), 0);
	CHECK_EQ(linkat(AT_FDCWD, victim, directory, name, 0), 0);
	CHECK_EQ(td_gpu_lock_take(directory, uuid, "/a", &owner), -EPERM);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 8);
	CHECK_EQ(unlinkat(directory, name, 0), 0);
	CHECK_EQ(mkfifoat(directory, name, 0666), 0);
	CHECK_EQ(td_gpu_lock_take(directory, uuid, "/a", &owner), -EPERM);
	close(fd);
	CHECK_EQ(unlink(victim), 0);
	end(directory);
}

TEST(a_text_that_makes_no_sense_names_nobody)
{
	static const char *const texts[] = {"", "pid=", "pid=x uid=0 socket=/a\n",
		"pid=7 uid=0 sock", "socket=/a pid=1 uid=1\n"};
	int directory = begin(), fd;
	struct td_gpu_owner owner;

	fd = td_gpu_lock_take(directory, uuid, "/a", &owner);
	CHECK(fd >= 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CHECK_EQ(ftruncate(fd, 0), 0);
		CHECK_EQ(pwrite(fd, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
		CHECK_EQ(td_gpu_lock_owner(directory, name, &owner), 0);
		CHECK_EQ(owner.pid, 0);
	}
	CHECK_EQ(ftruncate(fd, 0), 0);
	CHECK(pwrite(fd, "pid=7 uid=8 socket=/a\033[2J\n", 27, 0) > 0);
	CHECK_EQ(td_gpu_lock_owner(directory, name, &owner), 0);
	CHECK_STR(owner.socket, "/a?[2J");
	td_gpu_lock_release(directory, uuid, fd);
	end(directory);
}

TEST(a_directory_in_which_others_could_rename_files_is_refused)
{
	int directory = begin();
	struct stat st;

	CHECK_EQ(fstat(directory, &st), 0);
	CHECK_EQ(st.st_mode & 07777, 01777);
	CHECK_EQ(chmod(path, 0777), 0);
	CHECK_EQ(td_gpu_locks_open(path), -EPERM);
	CHECK_EQ(chmod(path, 0700), 0);
	close(directory);
	directory = td_gpu_locks_open(path);
	CHECK(directory >= 0);
	end(directory);
	CHECK_EQ(td_gpu_locks_open("/no/such/place"), -ENOENT);
}

TEST(the_environment_says_where)
{
	int directory = begin(), other;
	struct stat a, b;

	setenv("TANDEM_LOCKS", path, 1);
	other = td_gpu_locks_open("auto");
	CHECK(other >= 0);
	CHECK(!fstat(other, &a) && !fstat(directory, &b) && a.st_ino == b.st_ino);
	unsetenv("TANDEM_LOCKS");
	close(other);
	end(directory);
}
