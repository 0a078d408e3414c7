/* A library of kernels given as PTX text: loaded, searched, launched, unloaded. */
#include "check.h"

static const char ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 bias = 100;\n"
	".visible .entry shift(.param .u64 p)\n{\n"
	"\t.reg .b32 %r<5>;\n\t.reg .b64 %d<5>;\n"
	"\tld.param.u64 %d1, [p];\n\tcvta.to.global.u64 %d2, %d1;\n"
	"\tmov.u32 %r1, %tid.x;\n\tld.global.u32 %r2, [bias];\n\tadd.u32 %r3, %r1, %r2;\n"
	"\tmul.wide.u32 %d3, %r1, 4;\n\tadd.u64 %d4, %d2, %d3;\n\tst.global.u32 [%d4], "
	"%r3;\n\tret;\n}\n";

int main()
{
	cudaLibrary_t library;
	cudaKernel_t kernel, listed = NULL;
	unsigned count = 0, got[32], value = 1;
	size_t bytes;
	void *bias, *p, *args[] = {&p};

	CHECK(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cudaLibraryGetKernelCount(&count, library));
	EXPECT(count == 1);
	CHECK(cudaLibraryEnumerateKernels(&listed, 1, library));
	CHECK(cudaLibraryGetKernel(&kernel, library, "shift"));
	EXPECT(kernel == listed);
	CHECK(cudaMalloc(&p, sizeof(got)));
	CHECK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(32), args, 0, 0));
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got[0] == 100 && got[31] == 131);
	CHECK(cudaLibraryGetGlobal(&bias, &bytes, library, "bias"));
	EXPECT(bytes == 4);
	CHECK(cudaMemcpy(bias, &value, 4, cudaMemcpyHostToDevice));
	CHECK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(32), args, 0, 0));
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got[0] == 1 && got[31] == 32);
	EXPECT(cudaLibraryGetKernel(&kernel, library, "none") == cudaErrorSymbolNotFound);
	CHECK(cudaLibraryUnload(library));
	return passed();
}
