/* Memory and an event of one process opened by another. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

struct handles {
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t event;
};

__global__ void add(int *p, int by)
{
	p[threadIdx.x] += by;
}

static int child(int in)
{
	cudaEvent_t event;
	handles h;
	void *p;

	if (read(in, &h, sizeof(h)) != sizeof(h))
		return 3;
	CHECK(cudaIpcOpenMemHandle(&p, h.memory, cudaIpcMemLazyEnablePeerAccess));
	CHECK(cudaIpcOpenEventHandle(&event, h.event));
	CHECK(cudaStreamWaitEvent(0, event, 0));
	add<<<1, 32>>>((int *)p, 100);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaIpcCloseMemHandle(p));
	return 0;
}

int main()
{
	int pipes[2], got[32], status, *p;
	cudaEvent_t event;
	handles h;

	EXPECT(pipe(pipes) == 0);
	pid_t pid = fork(); /* before either has a context */
	if (!pid) {
		close(pipes[1]);
		_exit(child(pipes[0]));
	}
	close(pipes[0]);
	CHECK(cudaMalloc(&p, sizeof(got)));
	CHECK(cudaMemset(p, 0, sizeof(got)));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
	CHECK(cudaIpcGetMemHandle(&h.memory, p));
	CHECK(cudaIpcGetEventHandle(&h.event, event));
	add<<<1, 32>>>(p, 7);
	CHECK(cudaEventRecord(event));
	EXPECT(write(pipes[1], &h, sizeof(h)) == sizeof(h));
	EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	EXPECT(WEXITSTATUS(status) == 0);
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got[0] == 107 && got[31] == 107);
	return passed();
}
