/*
 * CUDA_VISIBLE_DEVICES on a machine with three GPUs: each look is a process of its own, as the
 * variable is read once.
 */
#define ALL_CALLS
#include "cuda.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPUS 3

struct look {
	CUresult init;
	int count;
	char bus[GPUS][16];
	CUuuid uuid[GPUS];
	size_t free_bytes[GPUS];
};

/*
 * Starts a process with that value (NULL: without the variable), which allocates so much on its
 * first device. It stays until *ret_fd is closed.
 */
static pid_t start(const char *list, size_t bytes, struct look *ret, int *ret_fd)
{
	struct look look = {0};
	int pair[2];
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CUcontext current;
		CUdeviceptr at;
		char end;

		close(pair[0]);
		if (list)
			setenv("CUDA_VISIBLE_DEVICES", list, 1);
		else
			unsetenv("CUDA_VISIBLE_DEVICES");
		look.init = cuInit(0);
		if (!look.init)
			(void)cuDeviceGetCount(&look.count);
		for (int i = 0; i < look.count; i++) {
			(void)cuDeviceGetPCIBusId(look.bus[i], sizeof(look.bus[i]), i);
			(void)cuDeviceGetUuid(&look.uuid[i], i);
			if (cuCtxCreate_v2(&current, 0, i) ||
				(!i && bytes && cuMemAlloc_v2(&at, bytes)))
				_exit(1);
			(void)cuMemGetInfo_v2(&look.free_bytes[i], NULL);
		}
		if (write(pair[1], &look, sizeof(look)) != sizeof(look))
			_exit(1);
		_exit(read(pair[1], &end, 1) != 0);
	}
	close(pair[1]);
	*ret_fd = pair[0];
	CHECK_EQ(read(pair[0], ret, sizeof(*ret)), (ssize_t)sizeof(*ret));
	return pid;
}

static void end_process(pid_t pid, int fd)
{
	int status;

	close(fd);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

static struct look look_with(const char *list)
{
	struct look look;
	int fd;
	pid_t pid = start(list, 0, &look, &fd);

	end_process(pid, fd);
	return look;
}

TEST(devices_are_those_that_are_named_in_that_order)
{
	struct look all = look_with(NULL), some = look_with("2,0");

	OK(all.init);
	CHECK_EQ(all.count, 3);
	OK(some.init);
	CHECK_EQ(some.count, 2);
	CHECK_STR(some.bus[0], all.bus[2]);
	CHECK_STR(some.bus[1], all.bus[0]);
	CHECK(!memcmp(&some.uuid[0], &all.uuid[2], sizeof(CUuuid)));
	CHECK_EQ(look_with("1,-1,0").count, 1);
	CHECK_EQ(look_with("1,7,0").count, 1);
}

TEST(uuids_name_devices_too)
{
	struct look all = look_with(NULL), one;
	char list[64] = "GPU-";

	for (int i = 0; i < 16; i++)
		snprintf(list + strlen(list), 4,
			i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
			(unsigned char)all.uuid[1].bytes[i]);
	one = look_with(list);
	OK(one.init);
	CHECK_EQ(one.count, 1);
	CHECK_STR(one.bus[0], all.bus[1]);
}

TEST(without_a_device_there_is_nothing_to_begin_with)
{
	CHECK_EQ(look_with("").init, CUDA_ERROR_NO_DEVICE);
	CHECK_EQ(look_with("-1").init, CUDA_ERROR_NO_DEVICE);
	CHECK_EQ(look_with("0,1,0").init, CUDA_ERROR_NO_DEVICE);
}

TEST(memory_is_taken_from_the_gpu_that_is_meant)
{
	struct look user, all;
	int user_fd, fd;
	pid_t user_pid = start("2", 16 * MIB, &user, &user_fd), pid;

	CHECK_EQ(user.count, 1);
	pid = start(NULL, 0, &all, &fd);
	CHECK_EQ(all.free_bytes[0], all.free_bytes[1]);
	CHECK(all.free_bytes[2] + 16 * MIB <= all.free_bytes[0]);
	end_process(pid, fd);
	end_process(user_pid, user_fd);
}

TEST(a_child_of_fork_has_no_driver)
{
	int status;
	pid_t pid;

	begin();
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CUdeviceptr at;
		int count;

		_exit(cuInit(0) != CUDA_ERROR_NOT_INITIALIZED ||
			cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED ||
			cuMemAlloc_v2(&at, 4) != CUDA_ERROR_NOT_INITIALIZED ||
			cuCtxSynchronize() != CUDA_ERROR_NOT_INITIALIZED);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	end();
}
