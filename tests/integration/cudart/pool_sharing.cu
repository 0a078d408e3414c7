/* A pool whose memory another process uses. */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void add(int *p, int by)
{
	p[threadIdx.x] += by;
}

static void send_fd(int to, int fd, const cudaMemPoolPtrExportData *data)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	iovec io = {(void *)data, sizeof(*data)};
	msghdr message = {};

	message.msg_iov = &io;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	cmsghdr *c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	EXPECT(sendmsg(to, &message, 0) == (ssize_t)sizeof(*data));
}

static int receive_fd(int from, cudaMemPoolPtrExportData *data)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	iovec io = {data, sizeof(*data)};
	msghdr message = {};
	int fd = -1;

	message.msg_iov = &io;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	if (recvmsg(from, &message, 0) == (ssize_t)sizeof(*data))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

static int child(int from)
{
	cudaMemPoolPtrExportData data;
	cudaMemAccessDesc access = {};
	cudaMemPool_t pool;
	int fd = receive_fd(from, &data), *p;

	if (fd < 0)
		return 3;
	CHECK(cudaMemPoolImportFromShareableHandle(
		&pool, (void *)(long)fd, cudaMemHandleTypePosixFileDescriptor, 0));
	access.location.type = cudaMemLocationTypeDevice;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	CHECK(cudaMemPoolSetAccess(pool, &access, 1));
	CHECK(cudaMemPoolImportPointer((void **)&p, pool, &data));
	add<<<1, 32>>>(p, 30);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(p));
	return 0;
}

int main()
{
	cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
	cudaMemPoolPtrExportData data;
	cudaMemPoolProps props = {};
	cudaMemAccessFlags flags;
	cudaMemPool_t pool;
	int ends[2], got[32], fd = -1, status, *p;

	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	pid_t pid = fork();
	if (!pid) {
		close(ends[0]);
		_exit(child(ends[1]));
	}
	close(ends[1]);
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	props.location = here;
	CHECK(cudaMemPoolCreate(&pool, &props));
	CHECK(cudaMemPoolGetAccess(&flags, pool, &here));
	EXPECT(flags == cudaMemAccessFlagsProtReadWrite);
	CHECK(cudaMemPoolExportToShareableHandle(
		&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
	CHECK(cudaMallocFromPoolAsync((void **)&p, sizeof(got), pool, 0));
	CHECK(cudaMemset(p, 0, sizeof(got)));
	add<<<1, 32>>>(p, 4);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemPoolExportPointer(&data, p));
	send_fd(ends[0], fd, &data);
	EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got[0] == 34 && got[31] == 34);
	CHECK(cudaFreeAsync(p, 0));
	CHECK(cudaStreamSynchronize(0));
	return passed();
}
