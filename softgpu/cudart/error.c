/* The names and texts of the runtime's errors, and the last error of each thread. */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/cudart/rt.h"

static const struct {
	int number;
	const char *name, *text;
} errors[] = {
#define X(name, number, text) {number, #name, text},
#include "softgpu/cudart/errors.def"
#undef X
};

static _Thread_local int last_error;

/* Tells whether the error ends the context: all later calls return it until the device is reset. */
static bool is_sticky(int error)
{
	switch (error) {
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_LAUNCH_FAILED: return true;
	default: return false;
	}
}

/* Libraries do not print by default. SOFTGPU_DEBUG shows which unsupported call a program makes. */
static void print_refusal(const char *name, const char *what)
{
	if (getenv("SOFTGPU_DEBUG"))
		fprintf(stderr, "softgpu: %s: %s\n", name, what);
}

int rt_done_in(const char *name, int error)
{
	if (!error)
		return 0;
	if (error == cudaErrorNotSupported)
		print_refusal(name, "not supported");
	last_error = error;
	return error;
}

int rt_refuse(const char *name)
{
	print_refusal(name, "not implemented");
	last_error = cudaErrorNotSupported;
	return cudaErrorNotSupported;
}

API int cudaPeekAtLastError(void)
{
	return last_error;
}

API int cudaGetLastError(void)
{
	int error = last_error;

	if (!is_sticky(error))
		last_error = cudaSuccess;
	return error;
}

void rt_error_reset(void)
{
	last_error = cudaSuccess;
}

API const char *cudaGetErrorName(int error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].number == error)
			return errors[i].name;
	return "unrecognized error code";
}

API const char *cudaGetErrorString(int error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].number == error)
			return errors[i].text;
	return "unrecognized error code";
}
