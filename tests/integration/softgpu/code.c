/*
 * Code: modules, functions, libraries and their kernels, the linker, occupancy, and launches as in
 * CUDA 3.
 */
#define ALL_CALLS
#include "cuda.h"

#include <unistd.h>

/* A shared array of 4 KiB, a global, a managed variable. */
static const char library_ptx[] = PTX_HEAD
	".visible .global .align 4 .u32 count = 7;\n"
	".visible .global .attribute(.managed) .align 4 .u32 both = 5;\n"
	".visible .entry first(.param .u64 p, .param .u32 x)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
	"ld.param.u64 %a, [p];\nld.param.u32 %v, [x];\nst.global.u32 [%a], %v;\nret;\n}\n"
	".visible .entry second()\n{\n.reg .u32 %v;\n.shared .align 4 .b8 room[4096];\n"
	"ld.global.u32 %v, [both];\nadd.u32 %v, %v, 1;\nst.global.u32 [both], %v;\nret;\n}\n";

TEST(modules_list_what_they_hold)
{
	static const char foreign[64] = "\177ELF\2\1\1"; /* a head, of no GPU's code */
	CUfunction listed[4] = {0}, f;
	CUdeviceptr at;
	CUmodule module, same;
	unsigned count;
	size_t bytes, offset;
	const char *name;
	void *reference;
	int value;

	begin();
	OK(cuModuleLoadDataEx(&module, library_ptx, 0, NULL, NULL));
	OK(cuModuleGetFunctionCount(&count, module));
	CHECK_EQ(count, 2);
	OK(cuModuleEnumerateFunctions(listed, 4, module));
	OK(cuModuleGetFunction(&f, module, "second"));
	CHECK(listed[1] == f && !listed[2]);
	OK(cuFuncGetName(&name, f));
	CHECK_STR(name, "second");
	OK(cuFuncGetModule(&same, f));
	CHECK(same == module);
	OK(cuFuncGetParamInfo(listed[0], 1, &offset, &bytes));
	CHECK(offset == 8 && bytes == 4);
	CHECK_EQ(cuFuncGetParamInfo(listed[0], 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncIsLoaded(&value, f));
	CHECK_EQ(value, 1);
	OK(cuFuncLoad(f));
	OK(cuModuleGetLoadingMode(&value));
	OK(cuModuleGetGlobal_v2(&at, &bytes, module, "count"));
	CHECK(bytes == 4 && word_at(at) == 7);
	CHECK_EQ(cuModuleGetGlobal_v2(&at, &bytes, module, "nothing"), CUDA_ERROR_NOT_FOUND);
	CHECK_EQ(cuModuleGetTexRef(&reference, module, "t"), CUDA_ERROR_NOT_FOUND);
	CHECK_EQ(cuModuleGetSurfRef(&reference, module, "t"), CUDA_ERROR_NOT_FOUND);
	OK(cuModuleUnload(module));
	CHECK_EQ(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuFuncGetName(&name, f), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuModuleLoadData(&module, foreign), CUDA_ERROR_INVALID_IMAGE);
	CHECK_EQ(cuModuleLoadData(&module, "no PTX"), CUDA_ERROR_INVALID_PTX);
	CHECK_EQ(cuModuleLoadFatBinary(&module, library_ptx), CUDA_SUCCESS);
	CHECK_EQ(cuModuleLoad(&module, "/nowhere/code.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
	end();
}

TEST(managed_variables_have_one_address_for_both_sides)
{
	CUdeviceptr at;
	CUmodule module;
	CUfunction f;

	begin();
	OK(cuModuleLoadData(&module, library_ptx));
	OK(cuModuleGetGlobal_v2(&at, NULL, module, "both"));
	CHECK_EQ(*(unsigned *)at, 5);
	OK(cuModuleGetFunction(&f, module, "second"));
	OK(launch(f, NULL, NULL));
	OK(cuCtxSynchronize());
	CHECK_EQ(*(unsigned *)at, 6);
	end();
}

TEST(functions_tell_their_needs_and_occupancy_follows)
{
	CUmodule module;
	CUfunction f;
	int value, blocks, grid, block;
	size_t bytes;
	CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};

	begin();
	OK(cuModuleLoadData(&module, library_ptx));
	OK(cuModuleGetFunction(&f, module, "second"));
	OK(cuFuncGetAttribute(&value, 1, f));
	CHECK_EQ(value, 4096);
	OK(cuFuncGetAttribute(&value, 0, f));
	CHECK_EQ(value, 1024);
	CHECK_EQ(cuFuncGetAttribute(&value, 99, f), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetAttribute(f, 8, 8192));
	OK(cuFuncGetAttribute(&value, 8, f));
	CHECK_EQ(value, 8192);
	CHECK_EQ(cuFuncSetAttribute(f, 8, 1 << 20), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuFuncSetAttribute(f, 1, 64), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetAttribute(f, 9, 50));
	OK(cuFuncSetCacheConfig(f, 1));
	OK(cuFuncSetSharedMemConfig(f, 2));
	CHECK_EQ(cuFuncSetSharedMemConfig(f, 3), CUDA_ERROR_INVALID_VALUE);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 128, 0));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&value, f, 128, 0, 1));
	CHECK(blocks > 0 && blocks == value);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 2048, 0));
	CHECK_EQ(value, 0);
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
	CHECK(block % 32 == 0 && grid > 0);
	OK(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, NULL, 0, 64, 0));
	CHECK(block <= 64);
	OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 128));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 128, bytes));
	CHECK_EQ(value, 1);
	CHECK_EQ(cuOccupancyMaxPotentialClusterSize(&value, f, &config), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQ(cuOccupancyMaxActiveClusters(&value, f, &config), CUDA_ERROR_NOT_SUPPORTED);
	end();
}

TEST(a_kernel_whose_variables_have_no_room_is_refused_for_that)
{
	static const char huge[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .global .b8 huge[1073741824];\n"
				   ".visible .entry f()\n{\nret;\n}\n";
	const char *preload = getenv("LD_PRELOAD");
	void *library, *kernel;

	begin();
	/* tandem asks for what a library takes when it is loaded (docs/decisions/0007). */
	if (preload && strstr(preload, "libtandem")) {
		CHECK_EQ(cuLibraryLoadData(&library, huge, NULL, NULL, 0, NULL, NULL, 0),
			CUDA_ERROR_OUT_OF_MEMORY);
		end();
		return;
	}
	OK(cuLibraryLoadData(&library, huge, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "f"));
	CHECK_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuLibraryUnload(library));
	end();
}

TEST(libraries_belong_to_no_context)
{
	void *library, *kernel_handle, *listed[4] = {0}, *owner;
	CUdeviceptr word, at, managed;
	CUcontext other;
	CUmodule module;
	CUfunction f;
	unsigned count, value = 11;
	size_t offset, bytes;
	const char *name;
	int number;
	void *params[] = {&word, &value};

	OK(cuInit(0));
	OK(cuLibraryLoadData(&library, library_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel_handle, library, "first"));
	CHECK_EQ(cuLibraryGetKernel(&owner, library, "none"), CUDA_ERROR_NOT_FOUND);
	OK(cuLibraryGetKernelCount(&count, library));
	CHECK_EQ(count, 2);
	OK(cuLibraryEnumerateKernels(listed, 4, library));
	CHECK(listed[0] == kernel_handle && !listed[2]);
	OK(cuKernelGetName(&name, kernel_handle));
	CHECK_STR(name, "first");
	OK(cuKernelGetLibrary(&owner, kernel_handle));
	CHECK(owner == library);
	OK(cuKernelGetParamInfo(kernel_handle, 0, &offset, &bytes));
	CHECK(offset == 0 && bytes == 8);
	OK(cuKernelSetAttribute(8, 1024, kernel_handle, 0));
	OK(cuKernelGetAttribute(&number, 8, kernel_handle, 0));
	CHECK_EQ(number, 1024);
	OK(cuKernelSetCacheConfig(kernel_handle, 1, 0));
	CHECK_EQ(cuLibraryGetModule(&module, library), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuLibraryGetManaged(&managed, &bytes, library, "both"));
	CHECK_EQ(cuLibraryGetManaged(&at, &bytes, library, "count"), CUDA_ERROR_NOT_FOUND);
	begin();
	OK(cuMemAlloc_v2(&word, 64));
	/* A kernel can be launched as a function is. */
	OK(cuLaunchKernel(kernel_handle, 1, 1, 1, 1, 1, 1, 1024, NULL, params, NULL));
	CHECK_EQ(word_at(word), 11);
	CHECK_EQ(cuLaunchKernel(kernel_handle, 1, 1, 1, 1, 1, 1, 1025, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuKernelGetFunction(&f, kernel_handle));
	OK(cuLibraryGetModule(&module, library));
	CHECK_EQ(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	OK(cuLibraryGetGlobal(&at, &bytes, library, "count"));
	CHECK_EQ(word_at(at), 7);
	/* Globals are each context's own, managed variables everybody's. */
	OK(cuKernelGetFunction(&f, listed[1]));
	OK(launch(f, NULL, NULL));
	OK(cuCtxSynchronize());
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuKernelGetFunction(&f, listed[1]));
	OK(launch(f, NULL, NULL));
	OK(cuCtxSynchronize());
	CHECK_EQ(*(unsigned *)managed, 7);
	OK(cuLibraryGetGlobal(&managed, NULL, library, "count"));
	CHECK(managed != at);
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxSetCurrent(context));
	OK(cuLibraryUnload(library));
	CHECK_EQ(cuLibraryUnload(library), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuLaunchKernel(kernel_handle, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuLibraryLoadFromFile(&library, "/nowhere", NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_FILE_NOT_FOUND);
	end();
}

static char caller_ptx[] = PTX_HEAD
	".extern .func (.param .u32 r) twice(.param .u32 x);\n"
	".visible .entry put(.param .u64 p, .param .u32 x)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
	"ld.param.u64 %a, [p];\nld.param.u32 %v, [x];\n"
	"{\n.param .u32 r;\n.param .u32 y;\nst.param.u32 [y], %v;\ncall (r), twice, (y);\n"
	"ld.param.u32 %v, [r];\n}\nst.global.u32 [%a], %v;\nret;\n}\n";
static char callee_ptx[] =
	"// another text\n" PTX_HEAD
	".visible .func (.param .u32 r) twice(.param .u32 x)\n{\n.reg .u32 %v;\n"
	"ld.param.u32 %v, [x];\nadd.u32 %v, %v, %v;\nst.param.u32 [r], %v;\nret;\n}\n";

TEST(the_linker_puts_texts_together)
{
	char path[] = "/tmp/softgpu-link-XXXXXX";
	int fd = mkstemp(path);
	void *state, *image;
	CUdeviceptr word;
	CUmodule module;
	CUfunction put;
	unsigned value = 21;
	void *params[] = {&word, &value};
	size_t bytes;

	begin();
	CHECK(fd >= 0 && write(fd, callee_ptx, sizeof(callee_ptx) - 1) > 0);
	close(fd);
	OK(cuMemAlloc_v2(&word, 64));
	OK(cuLinkCreate_v2(0, NULL, NULL, &state));
	OK(cuLinkAddData_v2(state, 1, caller_ptx, sizeof(caller_ptx), "caller", 0, NULL, NULL));
	CHECK_EQ(cuLinkComplete(state, &image, &bytes),
		CUDA_ERROR_INVALID_PTX); /* who is twice()? */
	OK(cuLinkAddFile_v2(state, 1, path, 0, NULL, NULL));
	OK(cuLinkComplete(state, &image, &bytes));
	CHECK(bytes > sizeof(caller_ptx));
	OK(cuModuleLoadData(&module, image));
	OK(cuModuleGetFunction(&put, module, "put"));
	OK(launch(put, NULL, params));
	CHECK_EQ(word_at(word), 42);
	CHECK_EQ(cuLinkAddData_v2(state, 0, caller_ptx, 8, "", 0, NULL, NULL),
		CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK_EQ(cuLinkAddData_v2(state, 5, caller_ptx, 8, "", 0, NULL, NULL),
		CUDA_ERROR_NOT_SUPPORTED);
	OK(cuLinkDestroy(state));
	CHECK_EQ(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
	/* The first versions. */
	OK(cuLinkCreate(0, NULL, NULL, &state));
	OK(cuLinkAddFile(state, 1, path, 0, NULL, NULL));
	OK(cuLinkAddData(state, 1, caller_ptx, sizeof(caller_ptx), NULL, 0, NULL, NULL));
	OK(cuLinkDestroy(state));
	unlink(path);
	end();
}

TEST(launches_of_cuda_3_keep_shape_and_parameters)
{
	CUdeviceptr word;
	CUstream stream;
	CUfunction f;

	begin();
	OK(cuMemAlloc_v2(&word, 64));
	OK(cuStreamCreate(&stream, 0));
	f = kernel("store");
	OK(cuFuncSetBlockShape(f, 1, 1, 1));
	OK(cuFuncSetSharedSize(f, 0));
	OK(cuParamSetv(f, 0, &word, sizeof(word)));
	OK(cuParamSeti(f, 8, 33));
	OK(cuParamSetSize(f, 12));
	OK(cuLaunch(f));
	CHECK_EQ(word_at(word), 33);
	OK(cuParamSetf(f, 8, 1.0f));
	OK(cuLaunchGrid(f, 2, 1));
	CHECK_EQ(word_at(word), 0x3f800000);
	OK(cuParamSeti(f, 8, 34));
	OK(cuLaunchGridAsync(f, 1, 1, stream));
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(word_at(word), 34);
	OK(cuParamSetSize(f, 8));
	CHECK_EQ(cuLaunch(f), CUDA_ERROR_INVALID_VALUE); /* a parameter short */
	CHECK_EQ(cuParamSetSize(f, 100000), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuFuncSetBlockShape(f, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(launches_of_every_flavour)
{
	CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
	CUlaunchAttribute attributes[1] = {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE}};
	CUdeviceptr word;
	CUfunction f;
	void *params[] = {&word};

	begin();
	OK(cuMemAlloc_v2(&word, 64));
	OK(cuMemsetD32_v2(word, 0, 1));
	f = kernel("add");
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuLaunchKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params));
	OK(cuLaunchCooperativeKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, NULL, params));
	OK(cuLaunchKernelEx(&config, f, params, NULL));
	attributes[0].value.cooperative = 1;
	config.attrs = attributes;
	config.numAttrs = 1;
	OK(cuLaunchKernelEx_ptsz(&config, f, params, NULL));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(word), 6);
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	CHECK_EQ(cuLaunchKernelEx(&config, f, params, NULL), CUDA_ERROR_NOT_SUPPORTED);
	end();
}
