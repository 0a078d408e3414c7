// shared: plugin_part.cu
/* A shared object with kernels, opened and closed while the program runs. */
#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include "check.h"

__global__ void own(int *p)
{
	*p += 1;
}

static std::string path()
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	EXPECT(n > 0);
	return std::string(self, n) + "_part.so";
}

int main()
{
	int *p, got = 0;

	CHECK(cudaMalloc(&p, sizeof(int)));
	CHECK(cudaMemset(p, 0, sizeof(int)));
	for (int i = 1; i <= 3; i++) {
		void *library = dlopen(path().c_str(), RTLD_NOW);

		EXPECT(library);
		int (*add_there)(int *) = (int (*)(int *))dlsym(library, "add_there");
		EXPECT(add_there && add_there(p) == 0);
		EXPECT(dlclose(library) == 0);
		own<<<1, 1>>>(p);
		CHECK(cudaMemcpy(&got, p, sizeof(int), cudaMemcpyDeviceToHost));
		/* a variable of the part has its first value each time the part is opened */
		EXPECT(got == i * 101);
	}
	return passed();
}
